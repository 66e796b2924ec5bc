/**
 * CPU cost of traces of OpenTelemetry, and of metrics and logs in addition: `message/send` to an echo agent, with tasks that run to `completed`, and
 * through the gateway with a negotiation. Servers that export are compared with servers that do not, in alternating rounds. The
 * first row compares two servers that do not, and shows the precision.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { ServerProcess } from './servers/server-process.ts'
import { AgentUnderTest, callsOf, sendParams } from './support/agent-under-test.ts'
import { httpRequest, LoadGenerator } from './support/load.ts'
import { cores } from './support/machine.ts'
import { quick } from './support/measure.ts'
import { inPairs, type Side } from './support/pairs.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'
import { tokenOf } from './support/tokens.ts'

await using stack = new AsyncDisposableStack()
/** A collector that discards what it receives, in this process and so on another core than the servers. */
const collector = createServer((request, response) => {
  request.resume().on('end', () => response.writeHead(200).end())
}).listen(0, '127.0.0.1')
await once(collector, 'listening')
stack.defer(() => collector.close().closeAllConnections())
const address = collector.address()
const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`

/** @param share the part of the traces that is exported, also `… with logs`; undefined: nothing is exported */
const settingsOf = (share: string | undefined): Record<string, string> =>
  share === undefined
    ? {}
    : {
        OTEL_EXPORTER_OTLP_ENDPOINT: url,
        OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
        OTEL_TRACES_SAMPLER_ARG: share.split(' ')[0] ?? '',
        ...(!share.endsWith('logs') && { OTEL_LOGS_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }),
      }

const mustHold = '"kind":"task"'

async function agent(share: string | undefined, open: AsyncDisposableStack): Promise<Side> {
  const { server } = open.use(await AgentUnderTest.start({ env: settingsOf(share) }))
  return { server, load: { requests: callsOf(1, 'message/send', sendParams()), mustHold } }
}

async function gateway(share: string | undefined, open: AsyncDisposableStack): Promise<Side> {
  const program = (name: string) => `${import.meta.dirname}/servers/${name}-process.ts`
  const upstream = open.use(await ServerProcess.start({ args: [program('upstream')], core: cores.load }))
  const oauth = open.use(await ServerProcess.start({ args: [program('oauth')], core: cores.load }))
  const server = open.use(
    await ServerProcess.start({
      args: ['--disable-warning=ExperimentalWarning', program('gateway')],
      core: cores.server,
      env: { UPSTREAM: upstream.address, OAUTH: oauth.address, ...settingsOf(share) },
    }),
  )
  const headers = { Authorization: `Bearer ${tokenOf(0)}` }
  const send = () => ({ jsonrpc: '2.0', id: '1', method: 'message/send', params: sendParams() })
  const requests = Array.from({ length: 200 }, () => httpRequest({ path: '/', headers, body: send() }))
  return { server, load: { requests, mustHold } }
}

const shares: [string, string | undefined][] = [
  ['off', undefined],
  ['0 %', '0'],
  ['10 %', '0.1'],
  ['100 %', '1'],
  ['10 %, with logs and metrics', '0.1 with logs'],
]
const results: Record<string, Record<string, number>> = {}
using generator = new LoadGenerator()
for (const [kind, start] of Object.entries({ agent, gateway }))
  for (const [name, share] of shares) {
    await using open = new AsyncDisposableStack()
    const [traced, plain] = [await start(share, open), await start(undefined, open)]
    const { ratio, micros } = await inPairs(generator, traced, plain, { pairs: quick ? 7 : 15 })
    results[`${kind}, ${name}`] = { ratio, micros: micros[0], 'micros off': micros[1] }
  }

printTable(
  ['CPU per message/send', 'ratio', 'µs', 'µs off'],
  Object.entries(results).map(([name, { ratio = 0, micros = 0, 'micros off': off = 0 }]) => [
    name,
    ratio.toFixed(3),
    micros.toFixed(0),
    off.toFixed(0),
  ]),
)
for (const kind of ['agent', 'gateway'])
  expectAtMost(
    `${kind}, 10 % of the traces ÷ off, CPU`,
    results[`${kind}, 10 %`]?.['ratio'] ?? Number.NaN,
    1.05,
  )
await saveResults('tracing', results)
