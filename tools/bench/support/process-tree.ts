import { readdirSync, readFileSync } from 'node:fs'

/** CPU time in microseconds of all descendants of this process, by program name. */
export function cpuByProgram(root = process.pid): Record<string, number> {
  const all = readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? statOf(Number(name)) : []))
  const ours = new Set([root])
  // A child has a higher id than its parent, except after a wrap-around, so a few passes find all descendants.
  for (let turn = 0; turn < 5; turn += 1)
    for (const { pid, parent } of all) if (ours.has(parent)) ours.add(pid)
  const sums: Record<string, number> = {}
  for (const { pid, program, micros } of all) {
    const name = pid === root ? 'this bench' : program
    if (ours.has(pid)) sums[name] = (sums[name] ?? 0) + micros
  }
  return sums
}

function statOf(pid: number): { pid: number; parent: number; program: string; micros: number }[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const program = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))
    // Includes the CPU time of exited children.
    const ticks = fields.slice(11, 15).reduce((sum, value) => sum + Number(value), 0)
    return [{ pid, parent: Number(fields[1]), program, micros: ticks * 10_000 }]
  } catch {
    return []
  }
}
