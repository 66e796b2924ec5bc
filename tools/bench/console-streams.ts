/**
 * CPU time of the gateway per request at a steady load, with 0 and with 10 open streams of events (`GET /operator/events`), in one
 * deployment, by rounds that alternate. One of five requests is a message, so that each stream also has tasks to send.
 * PER_SECOND is the load (default 1000).
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { ServerProcess } from './servers/server-process.ts'
import { sendParams } from './support/agent-under-test.ts'
import { httpRequest, LoadGenerator } from './support/load.ts'
import { cores, cpuMicrosOf } from './support/machine.ts'
import { connections, median, quick } from './support/measure.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'

const perSecond = Number(process.env['PER_SECOND'] ?? 1000)
const rounds = quick ? 3 : 9
const seconds = quick ? 5 : 10
const streams = 10
const program = path.join(import.meta.dirname, 'servers', 'deployment-process.ts')
const created = z.object({ result: z.object({ id: z.string() }) })

await using stack = new AsyncDisposableStack()
const generator = stack.use(new LoadGenerator())
const folder = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
stack.defer(() => rm(folder, { recursive: true, force: true }))
const tokenFile = path.join(folder, 'token')
const { pid, address } = stack.use(
  await ServerProcess.start({
    args: ['--disable-warning=ExperimentalWarning', program],
    core: cores.server,
    env: { AGENTS: '../tools/bench/support/echo', TOKEN_FILE: tokenFile },
  }),
)
const headers = { Authorization: `Bearer ${await readFile(tokenFile, 'utf8')}` }
const call = (method: string, params: object) =>
  httpRequest({ path: '/agents/echo/', headers, body: { jsonrpc: '2.0', id: '1', method, params } })

const sent = await fetch(`${address}/agents/echo/`, {
  method: 'POST',
  headers: { ...headers, 'content-type': 'application/json' },
  body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: sendParams() }),
})
const taskId = created.parse(await sent.json()).result.id
const read = call('tasks/get', { task_id: taskId })
const requests = Array.from({ length: 500 }, (_, number) =>
  number % 5 === 0 ? call('message/send', { ...sendParams(), id: randomUUID() }) : read,
)

/** Opens streams of events, which are read and counted until they are closed. */
async function openStreams(count: number) {
  const stop = new AbortController()
  let bytes = 0
  const open = Array.from({ length: count }, async () => {
    const response = await fetch(`${address}/operator/events`, { headers, signal: stop.signal })
    if (response.body === null) throw new Error(`answered ${response.status}`)
    const reading = (async () => {
      for await (const chunk of response.body ?? []) bytes += chunk.byteLength
    })()
    reading.catch(() => {})
  })
  await Promise.all(open)
  return { bytes: () => bytes, [Symbol.dispose]: () => stop.abort() }
}

async function microsPerRequest(count: number): Promise<{ micros: number; bytes: number }> {
  using open = await openStreams(count)
  await wait(count === 0 ? 11_000 : 1000)
  const before = cpuMicrosOf(pid)
  const load = { address, requests, connections, seconds, perSecond, mustHold: '"kind":"task"' }
  const { accepted } = await generator.run(load)
  const micros = (cpuMicrosOf(pid) - before) / accepted
  return { micros, bytes: open.bytes() }
}

await generator.run({ address, requests, connections, seconds, perSecond, mustHold: '"kind":"task"' })
const found: { without: number[]; with: number[]; bytes: number[] } = { without: [], with: [], bytes: [] }
for (let round = 0; round < rounds; round += 1) {
  found.without.push((await microsPerRequest(0)).micros)
  const measured = await microsPerRequest(streams)
  found.with.push(measured.micros)
  found.bytes.push(measured.bytes)
}
printTable(
  ['', 'CPU µs/request'],
  [
    ['no stream', median(found.without).toFixed(0)],
    [`${streams} streams`, median(found.with).toFixed(0)],
    ['bytes read per stream and second', (median(found.bytes) / streams / seconds).toFixed(0)],
  ],
)
const ratios = found.with.map((micros, round) => micros / (found.without[round] ?? Number.NaN))
expectAtMost(`${streams} streams ÷ none, CPU of the gateway at ${perSecond}/s`, median(ratios), 1.03)
await saveResults('console-streams', { perSecond, streams, ...found })
