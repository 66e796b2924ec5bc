/**
 * Wall-clock time of a `parley` command that needs no server, from the start of the process to its exit. The first run, which
 * fills the compile cache, is not measured.
 */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { median, quick } from './support/measure.ts'
import { checkTarget, printTable, saveResults } from './support/report.ts'

const runs = quick ? 5 : 15
const program = path.join(import.meta.dirname, '../../cli/bin.mjs')

function run(...args: string[]): number {
  const began = performance.now()
  const { status, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`parley ${args.join(' ')} exited with ${status}: ${stderr}`)
  return performance.now() - began
}

run('--help')
const milliseconds = Array.from({ length: runs }, () => run('--help'))
printTable(
  ['command', 'median ms', 'slowest ms'],
  [['parley --help', median(milliseconds).toFixed(0), Math.max(...milliseconds).toFixed(0)]],
)
checkTarget('parley --help, wall clock', median(milliseconds))
await saveResults('cli', { milliseconds })
