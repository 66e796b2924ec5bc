/**
 * `npm run crash:payments -- [count]`: kills (SIGKILL) an agent that is paid on a local chain 20 times, or `count`
 * times, between settlement and work. Then it compares its ledger with the chain. Exits with status 1 if they differ.
 */
import { paymentCrashRun } from './testing/payment-crash.ts'

const kills = Number(process.argv[2] ?? 20)
if (!Number.isInteger(kills) || kills < 1) {
  console.error('Usage: npm run crash:payments -- [kills], at least 1')
  process.exit(2)
}
const figures = await paymentCrashRun({ kills, killWithinMs: 800, say: (text) => console.log(text) })
console.table(figures)
const { forgotten, invented, notDone, stuck } = figures
process.exitCode = forgotten + invented + notDone + stuck === 0 ? 0 : 1
