/**
 * Duration of `tools/list` of a gateway with 1,000 skills: one caller sends requests in sequence, with one core for the gateway,
 * so that p99 is the duration of one response without queueing. A page has 250 tools.
 */
import { ServerProcess } from './servers/server-process.ts'
import { httpRequest, LoadGenerator } from './support/load.ts'
import { cores } from './support/machine.ts'
import { quick } from './support/measure.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'
import { tokenOf } from './support/tokens.ts'

const skills = 1000
const total = quick ? 500 : 5000
const p99MaxMs = 10

const program = (name: string) => `${import.meta.dirname}/servers/${name}-process.ts`
await using oauth = await ServerProcess.start({ args: [program('oauth')], core: cores.load })
await using upstream = await ServerProcess.start({ args: [program('upstream')], core: cores.load })
await using server = await ServerProcess.start({
  args: ['--disable-warning=ExperimentalWarning', program('gateway')],
  core: cores.server,
  env: { UPSTREAM: upstream.address, OAUTH: oauth.address, AGENTS: String(skills - 1) },
  startLimitMs: 120_000,
})
using generator = new LoadGenerator()

const version = '2026-07-28'
const headers = {
  Authorization: `Bearer ${tokenOf(0)}`,
  Accept: 'application/json, text/event-stream',
}
const _meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientCapabilities': {},
}
const request = httpRequest({
  path: '/mcp',
  headers: { ...headers, 'MCP-Protocol-Version': version, 'Mcp-Method': 'tools/list' },
  body: { jsonrpc: '2.0', id: '1', method: 'tools/list', params: { _meta } },
})
const load = {
  requests: [request],
  connections: 1,
  address: server.address,
  mustHold: '"nextCursor"',
}
await generator.run({ ...load, total: quick ? 200 : 500 })
const cpu = server.cpuMicros
const { p50Ms, p99Ms } = await generator.run({ ...load, total })
const results = { p50Ms, p99Ms, cpuMicrosPerRequest: (server.cpuMicros - cpu) / total }
printTable(
  ['skills', 'p50 ms', 'p99 ms', 'CPU µs'],
  [[String(skills), p50Ms.toFixed(2), p99Ms.toFixed(2), results.cpuMicrosPerRequest.toFixed(0)]],
)
expectAtMost('p99 of tools/list', p99Ms, p99MaxMs, 'ms')
await saveResults('mcp-tools-list', results)
