/**
 * `npm run chaos -- [seed] [seconds]`: three processes of one agent over MongoDB and Redis, under load, while processes are
 * killed (SIGKILL) and frozen, Redis comes back empty and the database goes away; then every acknowledged task is looked
 * for. Exits 1 when one is lost, double or stuck, or anything else is not as it was promised.
 */
import { hasServers } from '../shared/testing/agent-processes.ts'
import { chaosRun, isRight } from '../shared/testing/chaos-run.ts'

const [seed, seconds] = [process.argv[2] ?? Math.floor(Math.random() * 1e9), process.argv[3] ?? 60].map(
  Number,
)
if (!Number.isInteger(seed) || !Number.isInteger(seconds) || (seconds ?? 0) < 1) {
  console.error('npm run chaos -- [seed] [seconds], whole numbers')
  process.exit(2)
}
if (!hasServers) {
  console.error('npm run chaos needs redis-server and a MongoDB-compatible server: see npm run mongodb')
  process.exit(2)
}
const say = (text: string) => console.log(`${new Date().toISOString()} ${text}`)
const figures = await chaosRun({ seed: seed ?? 0, seconds: seconds ?? 0, say })
console.log(JSON.stringify(figures, undefined, 2))
process.exitCode = isRight(figures) ? 0 : 1
