/**
 * `npm run crash:payments`: an agent that is paid on a local chain is killed (SIGKILL) 20 times, or as often as the first
 * argument says, between settlement and work; then its ledger is held against the chain. Exits 1 when they differ.
 */
import { paymentCrashRun } from './testing/payment-crash.ts'

const kills = Number(process.argv[2] ?? 20)
if (!Number.isInteger(kills) || kills < 1) {
  console.error('npm run crash:payments -- [kills], a number from 1 on')
  process.exit(2)
}
const figures = await paymentCrashRun({ kills, killWithinMs: 800, say: (text) => console.log(text) })
console.table(figures)
const { forgotten, invented, notDone, stuck } = figures
process.exitCode = forgotten + invented + notDone + stuck === 0 ? 0 : 1
