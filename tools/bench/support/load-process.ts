/**
 * Sends prepared requests over sockets, one at a time per connection, and measures each. It does not use an HTTP client,
 * which would cost as much as the server under test.
 */
import { Connection } from './connection.ts'
import type { Load, LoadResult } from './load.ts'

process.on('message', (load: Load) => {
  run(load).then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ error: String(error) }),
  )
})
process.on('disconnect', () => process.exit(0))

async function run(load: Load): Promise<LoadResult> {
  const bytes = load.requests.map((request) => Buffer.from(request))
  const latencies: number[] = []
  let [sent, accepted, refused] = [0, 0, 0]
  let refusal: string | undefined
  const connections = await Promise.all(
    Array.from({ length: load.connections }, () => Connection.open(load.address)),
  )
  // Connections are opened before the load starts; otherwise, requests due during the setup would count as late.
  const cpu = process.cpuUsage()
  const began = performance.now()
  const endsAt = began + (load.seconds ?? Number.POSITIVE_INFINITY) * 1000
  const total = load.total ?? Number.POSITIVE_INFINITY

  const due = load.perSecond === undefined ? closedLoop : openLoop(load.perSecond, began)
  const drive = async (connection: Connection) => {
    while (sent < total && performance.now() < endsAt) {
      const request = bytes[sent % bytes.length] as Buffer
      sent += 1
      const start = await due(sent)
      const answer = await connection.ask(request)
      latencies.push(performance.now() - start)
      if (answer.ok && answer.body.includes(load.mustHold)) accepted += 1
      else {
        refused += 1
        refusal ??= answer.body
      }
    }
    connection.close()
  }
  await Promise.all(connections.map(drive))
  const seconds = (performance.now() - began) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const generatorUse = (user + system) / 1_000_000 / seconds
  const sorted = Float64Array.from(latencies).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { accepted, refused, refusal, seconds, p50Ms: at(0.5), p99Ms: at(0.99), generatorUse }
}

const closedLoop = () => performance.now()

/**
 * Waits for the start time of the request with this number. When it waits for a connection, its latency counts from the
 * start time; delays of the generator's timer do not count.
 */
function openLoop(perSecond: number, began: number): (number: number) => number | Promise<number> {
  return async (number) => {
    const at = began + ((number - 1) * 1000) / perSecond
    const early = at - performance.now()
    if (early <= 0) return at
    await new Promise((resolve) => setTimeout(resolve, early))
    return performance.now()
  }
}
