/**
 * Duration of a ranking of 100 to 100,000 agents, generated from the texts in `tools/bench/data/routing`, and the
 * memory per agent. Then `POST /agent/negotiation` with 10 candidates over HTTP, with 10,000 agents and one core for
 * the gateway: without feedback, and with feedback for 2,000 of the agents. `BENCH_QUICK=yes` measures only over HTTP. One caller sends requests in sequence, so that p99 is the duration of one response without queueing. CPU
 * time includes responses, records, garbage collection, and health checks of 10,000 agents once per lease.
 */
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import type { Offer } from '@parley/negotiation/score/offer'
import { defaultWeights } from '@parley/negotiation/score/weights'
import { texts } from '../testing/routing-list.ts'
import { ServerProcess } from './servers/server-process.ts'
import { httpRequest, LoadGenerator } from './support/load.ts'
import { cores, coreTimes, idleShare } from './support/machine.ts'
import { quick } from './support/measure.ts'
import { checkTarget, expectAtMost, percent, printTable, saveResults } from './support/report.ts'
import { offerOf, request } from './support/routing-data.ts'
import { variedAgents } from './support/varied-agents.ts'

const sizes = [100, 1000, 10_000, 100_000]
const agentOf = variedAgents(7)

function varied(number: number): Offer {
  const { queueDepth, ...agent } = agentOf(number)
  return { ...offerOf(agent), queueDepth }
}

const used = () => {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function measure(size: number) {
  const before = used()
  const offers = Array.from({ length: size }, (_, number) => varied(number))
  const index = new AgentIndex()
  const started = performance.now()
  offers.forEach((offer, number) => index.put(`id-${number}`, `agent-${number}`, offer))
  const loadMs = performance.now() - started
  const bytes = (used() - before) / size
  const asked = texts.slice(0, size > 10_000 ? 300 : 1000)
  const times = asked.map(({ query }, at) => {
    const from = performance.now()
    index.rank(request(query, defaultWeights))
    return at < 100 ? undefined : performance.now() - from
  })
  const sorted = times.filter((time) => time !== undefined).sort((a, b) => a - b)
  const one = performance.now()
  index.put('one-more', 'one-more', varied(size))
  const oneMoreMs = performance.now() - one
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
  return { size, loadMs, bytes, p50Ms: at(0.5), p99Ms: at(0.99), oneMoreMs }
}

const program = (name: string) => `${import.meta.dirname}/servers/${name}-process.ts`

/** Number of agents, and how many of them have feedback. */
const registry = { agents: 10_000, taught: 2000 }

/** Measures one caller and 10,000 agents, with one core for the gateway. */
async function overHttp(taught: number) {
  await using upstream = await ServerProcess.start({ args: [program('upstream')], core: cores.load })
  await using oauth = await ServerProcess.start({ args: [program('oauth')], core: cores.load })
  await using server = await ServerProcess.start({
    args: ['--disable-warning=ExperimentalWarning', program('gateway')],
    core: cores.server,
    env: {
      UPSTREAM: upstream.address,
      OAUTH: oauth.address,
      AGENTS: String(registry.agents),
      TAUGHT: String(taught),
    },
    nodeFlags: (process.env['BENCH_NODE_FLAGS'] ?? '').split(' ').filter(Boolean),
    startLimitMs: 120_000,
  })
  using generator = new LoadGenerator()
  const weights = { skill_match: 0.55, io_compatibility: 0.2, performance: 0.15, load: 0.05, cost: 0.05 }
  const requests = texts.slice(0, 1000).map(({ query }) =>
    httpRequest({
      path: '/agent/negotiation',
      headers: {},
      body: { task_summary: query, weights, limit: 10 },
    }),
  )
  const load = { requests, connections: 1, address: server.address, mustHold: '"candidates":[{' }
  await generator.run({ ...load, total: 3000 })
  const [cpu, core] = [server.cpuMicros, coreTimes(cores.server)]
  // Ten seconds include two of the periodic writes of the agents' health.
  const total = quick ? 4000 : 10_000
  const { p50Ms, p99Ms, seconds } = await generator.run({ ...load, total })
  const cpuMicros = server.cpuMicros - cpu
  const others = 1 - idleShare(core, coreTimes(cores.server)) - cpuMicros / (seconds * 1_000_000)
  return {
    p50Ms,
    p99Ms,
    cpuMicrosPerRequest: cpuMicros / total,
    othersOnServerCore: Math.max(0, others),
    requestsPerSecond: total / seconds,
    rssBytes: server.rssBytes,
  }
}

function printRankings(found: ReturnType<typeof measure>[]): void {
  printTable(
    ['agents', 'p50 ms', 'p99 ms', 'load ms', 'add ms', 'bytes/agent'],
    found.map(({ size, p50Ms, p99Ms, loadMs, oneMoreMs, bytes }) => [
      String(size),
      p50Ms.toFixed(2),
      p99Ms.toFixed(2),
      loadMs.toFixed(0),
      oneMoreMs.toFixed(2),
      String(Math.round(bytes)),
    ]),
  )
  const one = (size: number) => found.find((ranking) => ranking.size === size)
  const p50 = (size: number) => one(size)?.p50Ms ?? 0
  expectAtMost('p99 of a ranking with 10,000 agents', one(registry.agents)?.p99Ms ?? 0, 3, ' ms')
  expectAtMost('p50 at 10,000 ÷ p50 at 100', p50(10_000) / p50(100), 10)
  expectAtMost('p50 at 100,000 ÷ p50 at 1,000', p50(100_000) / p50(1000), 10)
}

const found = quick ? [] : sizes.map(measure)
if (!quick) printRankings(found)
const http = { plain: await overHttp(0), taught: await overHttp(registry.taught) }
console.log('\nPOST /agent/negotiation at 10,000 agents, 10 candidates')
printTable(
  ['agents with feedback', 'p50 ms', 'p99 ms', 'CPU µs', 'other programs'],
  Object.entries(http).map(([name, figures]) => [
    name,
    figures.p50Ms.toFixed(2),
    figures.p99Ms.toFixed(2),
    figures.cpuMicrosPerRequest.toFixed(0),
    percent(figures.othersOnServerCore),
  ]),
)
checkTarget('POST /agent/negotiation, 10,000 agents, p99', http.plain.p99Ms)
checkTarget('POST /agent/negotiation, 2,000 of 10,000 agents with feedback, p99', http.taught.p99Ms)
await saveResults('negotiation', { found, http })
