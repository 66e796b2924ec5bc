/**
 * Webhook receivers in one process, each on its own port. The last ones respond with a delay. GET returns the number of
 * deliveries and their delays since the timestamps of the events. DELETE clears the delays. Arguments: number of
 * receivers, number of slow receivers, their delay in milliseconds.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Received } from './receivers.ts'

const [count = 1, hanging = 0, hangMs = 0] = process.argv.slice(2).map(Number)
const tasks = new Map<string, number>()
const seen = new Set<string>()
const latencies: number[] = []
let [events, repeated, outOfOrder, hung] = [0, 0, 0, 0]

const servers = await Promise.all(Array.from({ length: count }, (_, index) => start(index < hanging)))
const ports = servers.map((server) => (server.address() as AddressInfo).port)
const control = createServer((request, response) => {
  if (request.method === 'DELETE') latencies.length = 0
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(report()))
})
control.listen(0, '127.0.0.1', () => {
  const { port } = control.address() as AddressInfo
  console.error(JSON.stringify({ address: `http://127.0.0.1:${port}` }))
})
process.on('SIGTERM', () => process.exit(0))

async function start(hangs: boolean) {
  const server = createServer((request, response) => {
    void answer(request, response, hangs)
  })
  server.keepAliveTimeout = 120_000
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

async function answer(request: IncomingMessage, response: ServerResponse, hangs: boolean): Promise<void> {
  const body = await bodyOf(request)
  if (hangs) {
    hung += 1
    await wait(hangMs)
  } else note(JSON.parse(body) as Event, performance.timeOrigin + performance.now())
  response.writeHead(200, { 'content-length': 0 }).end()
}

interface Event {
  event_id: string
  task_id: string
  sequence: number
  timestamp: string
}

function note(event: Event, now: number): void {
  if (seen.has(event.event_id)) {
    repeated += 1
    return
  }
  seen.add(event.event_id)
  events += 1
  latencies.push(now - millisOf(event.timestamp))
  const before = tasks.get(event.task_id) ?? 0
  if (event.sequence !== before + 1) outOfOrder += 1
  tasks.set(event.task_id, event.sequence)
}

/** Parses a timestamp with microseconds, which `Date` does not support. */
function millisOf(timestamp: string): number {
  return Date.parse(timestamp) + Number(timestamp.slice(23, 26)) / 1000
}

function report(): Received {
  const sorted = Float64Array.from(latencies).sort()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  const urls = ports.map((port) => `http://127.0.0.1:${port}/hook`)
  return { urls, tasks: tasks.size, events, repeated, outOfOrder, hung, p50Ms: at(0.5), p99Ms: at(0.99) }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = ''
  request.setEncoding('utf8')
  for await (const chunk of request as AsyncIterable<string>) body += chunk
  return body
}
