/**
 * `npm run crash`: an agent under load is killed (SIGKILL) 20 times, or as often as the first argument says, at random
 * moments; then every acknowledged task is looked for. Exits 1 when one is lost, stuck, doubled or its events are wrong.
 */
import { crashRun } from './testing/crash-run.ts'

const kills = Number(process.argv[2] ?? 20)
if (!Number.isInteger(kills) || kills < 1) {
  console.error('npm run crash -- [kills], a number from 1 on')
  process.exit(2)
}
const figures = await crashRun({ kills, clients: 8, say: (text) => console.log(text) })
console.table(figures)
const { lost, stuck, badEvents, doubled } = figures
process.exitCode = lost + stuck + badEvents + doubled === 0 ? 0 : 1
