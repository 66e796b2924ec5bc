/**
 * `npm run powercut -- [--tasks 1500] [--cuts 150] [--unsafe]`: records every file operation of an agent with the embedded store under
 * load, and cuts the power at many moments of the recording. Writes after the last fsync of a file are lost, in part or
 * completely, and so are names of files that their folder has not synced. Exits with status 1 if a state that a client had
 * received is missing, or a store is damaged. `--unsafe` runs the agent with `synchronous = OFF` and must report lost tasks. Needs
 * strace.
 */
import { parseArgs } from 'node:util'
import { pathOf } from './install-programs.ts'
import { powercutRun } from './powercut/run.ts'

const strings = { tasks: { type: 'string' }, cuts: { type: 'string' } } as const
const { values } = parseArgs({ options: { ...strings, unsafe: { type: 'boolean' } } })
const tasks = Number(values.tasks ?? 1500)
const cuts = Number(values.cuts ?? 150)
const strace = pathOf('strace')
if (!Number.isInteger(tasks) || tasks < 1 || !Number.isInteger(cuts) || cuts < 1) {
  console.error('Usage: npm run powercut -- [--tasks 1500] [--cuts 150] [--unsafe]')
  process.exitCode = 2
} else if (strace === undefined) {
  console.error('npm run powercut needs strace (Debian: apt-get install strace).')
  process.exitCode = 2
} else {
  const say = (text: string) => console.log(text)
  const figures = await powercutRun(strace, { tasks, clients: 8, cuts, unsafe: values.unsafe === true, say })
  console.table(figures)
  process.exitCode = figures.lost + figures.damaged === 0 ? 0 : 1
}
