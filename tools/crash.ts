/**
 * `npm run crash -- [count]`: kills (SIGKILL) an agent under load 20 times, or `count` times, at random moments. Then
 * it checks every acknowledged task. Exits with status 1 if a task is lost, stuck or duplicated, or has wrong events.
 */
import { crashRun } from './testing/crash-run.ts'

const kills = Number(process.argv[2] ?? 20)
if (!Number.isInteger(kills) || kills < 1) {
  console.error('Usage: npm run crash -- [kills], at least 1')
  process.exit(2)
}
const figures = await crashRun({ kills, clients: 8, say: (text) => console.log(text) })
console.table(figures)
const { lost, stuck, badEvents, doubled } = figures
process.exitCode = lost + stuck + badEvents + doubled === 0 ? 0 : 1
