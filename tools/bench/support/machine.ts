import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import os from 'node:os'

/** The cores to which processes are assigned. The server under test has its own core. */
export const cores = { server: 0, load: 1 } as const

/** Whether processes are pinned to cores. Otherwise they share the cores, and figures vary more. */
export const pinned = os.availableParallelism() >= 2 && spawnSync('taskset', ['-c', '0', 'true']).status === 0

/** Which cores the processes of a measurement may use: one for the server and one for the load, or any. */
export type Placement = 'pinned' | 'free'

/** The command that runs Node with these arguments on the core. */
export function nodeOn(core: number | 'any', args: string[]): { file: string; args: string[] } {
  if (!pinned || core === 'any') return { file: process.execPath, args }
  return { file: 'taskset', args: ['-c', String(core), process.execPath, ...args] }
}

/** The same command with a lower priority, so that it uses the time that other processes leave. */
export function nodeBehind(args: string[]): { file: string; args: string[] } {
  return { file: 'nice', args: ['-n', '10', process.execPath, ...args] }
}

/** Description of the machine, for the results. */
export function machine() {
  const [cpu] = os.cpus()
  return {
    cpu: cpu?.model.trim() ?? 'unknown',
    cores: os.availableParallelism(),
    memoryGb: Math.round(os.totalmem() / 1e9),
    node: process.version,
    system: `${os.type()} ${os.release()}`,
    pinned,
  }
}

/** CPU time of a process with all its threads, in microseconds. Resolution 10 ms. */
export function cpuMicrosOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  // The program name, in parentheses, can contain any character.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * 10_000
}

/** The running processes that this process and its descendants have started. */
export function descendantsOf(pid: number): number[] {
  const children = globSync(`/proc/${pid}/task/*/children`).flatMap((file) =>
    readFileSync(file, 'latin1').trim().split(' ').filter(Boolean).map(Number),
  )
  return children.flatMap((child) => [child, ...descendantsOf(child)])
}

/** Resident memory in bytes. */
export function rssOf(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))
  return Number(match?.[1] ?? 0) * 1024
}

export interface CoreTimes {
  idle: number
  total: number
}

/** Ticks of a core, or of all cores, since boot. Waiting for the disk counts as idle. */
export function coreTimes(core: number | 'all'): CoreTimes {
  const name = core === 'all' ? 'cpu ' : `cpu${core} `
  const line = readFileSync('/proc/stat', 'latin1')
    .split('\n')
    .find((text) => text.startsWith(name))
  const ticks = (line ?? '').split(/\s+/).slice(1, 9).map(Number)
  return { idle: (ticks[3] ?? 0) + (ticks[4] ?? 0), total: ticks.reduce((sum, value) => sum + value, 0) }
}

/** Fraction of the time between two measurements in which a core was idle, 0 to 1. */
export function idleShare(before: CoreTimes, after: CoreTimes): number {
  const total = after.total - before.total
  return total === 0 ? 0 : (after.idle - before.idle) / total
}
