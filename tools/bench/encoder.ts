/**
 * The cost of the sentence encoder: `POST /agent/negotiation` with 10 candidates among 10,000 agents over HTTP, where every request has a text that was
 * never sent before, and the memory of the gateway with 1,000 agents of ten skills. Each with the encoder and by words only. The encoder's thread
 * needs a core of its own, so that no process is bound to a core. Then the ranking alone, with vectors of 10,000 and 100,000 agents (those of
 * the encoder's background with noise), compared with scoring every agent.
 */
import { SentenceEncoder } from '@parley/encoder/sentence-encoder'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import type { QueryMeaning } from '@parley/negotiation/index/skill-vectors'
import { negotiate } from '@parley/negotiation/score/negotiate'
import type { Offer } from '@parley/negotiation/score/offer'
import { defaultWeights } from '@parley/negotiation/score/weights'
import { numbersFrom, texts } from '../testing/routing-list.ts'
import { ServerProcess } from './servers/server-process.ts'
import { httpRequest, LoadGenerator } from './support/load.ts'
import { quick } from './support/measure.ts'
import { expectAtLeast, expectAtMost, printTable, saveResults } from './support/report.ts'
import { offerOf, request } from './support/routing-data.ts'
import { variedAgents } from './support/varied-agents.ts'

const program = (name: string) => `${import.meta.dirname}/servers/${name}-process.ts`
const total = quick ? 500 : 2000
const weights = { skill_match: 0.55, io_compatibility: 0.2, performance: 0.15, load: 0.05, cost: 0.05 }
const megabyte = 1024 * 1024
const rounds = 3
/** Number of rankings that are compared with scoring every agent. */
const checks = 5

interface Setup {
  agents: number
  skills: number
  encoder: boolean
}

async function gatewayWith({ agents, skills, encoder }: Setup) {
  const upstream = await ServerProcess.start({ args: [program('upstream')], core: 'any' })
  const oauth = await ServerProcess.start({ args: [program('oauth')], core: 'any' })
  const server = await ServerProcess.start({
    args: ['--disable-warning=ExperimentalWarning', program('gateway')],
    core: 'any',
    env: {
      UPSTREAM: upstream.address,
      OAUTH: oauth.address,
      AGENTS: String(agents),
      SKILLS: String(skills),
      ENCODER: encoder ? 'yes' : 'no',
    },
    startLimitMs: 600_000,
  })
  return {
    server,
    async [Symbol.asyncDispose]() {
      for (const one of [server, oauth, upstream]) await one[Symbol.asyncDispose]()
    },
  }
}

/** Texts that differ from each other and from those of other rounds, so that no vector is kept from before. */
const requestsOf = (round: number) =>
  Array.from({ length: total }, (_, at) => {
    const text = texts[(round * total + at) % texts.length]?.query ?? ''
    return httpRequest({
      path: '/agent/negotiation',
      headers: {},
      body: { task_summary: `${text} Reference ${round}-${at}.`, weights, limit: 10 },
    })
  })

async function latency(encoder: boolean) {
  await using gateway = await gatewayWith({ agents: 10_000, skills: 1, encoder })
  using generator = new LoadGenerator()
  const { address } = gateway.server
  const found: { p50Ms: number; p99Ms: number }[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const requests = requestsOf(round)
    const figures = await generator.run({
      requests,
      connections: 1,
      total,
      address,
      mustHold: '"candidates":[{',
    })
    // The first round warms up.
    if (round > 0) found.push(figures)
  }
  const median = (of: (figures: (typeof found)[number]) => number) =>
    found.map(of).sort((a, b) => a - b)[Math.floor(found.length / 2)] ?? 0
  return { p50Ms: median(({ p50Ms }) => p50Ms), p99Ms: median(({ p99Ms }) => p99Ms) }
}

async function memory(encoder: boolean): Promise<number> {
  await using gateway = await gatewayWith({ agents: 1000, skills: 10, encoder })
  using generator = new LoadGenerator()
  const { address } = gateway.server
  await generator.run({
    requests: requestsOf(0),
    connections: 1,
    total: 300,
    address,
    mustHold: '"candidates":[{',
  })
  return gateway.server.rssBytes / megabyte
}

/** Durations of rankings with vectors, and the fraction of rankings that are the same as after scoring every agent. */
async function rankings(size: number) {
  await using encoder = new SentenceEncoder()
  const next = numbersFrom(11)
  const skills = await encoder.background()
  const near = (vector: Float32Array = new Float32Array(384)): Float32Array => {
    const moved = vector.map((value) => value + (next() - 0.5) / 10)
    const length = Math.hypot(...moved)
    return moved.map((value) => value / length)
  }
  const index = new AgentIndex()
  const agentOf = variedAgents(7)
  const offers = Array.from({ length: size }, (_, number): Offer => {
    const { queueDepth, ...agent } = agentOf(number)
    return { ...offerOf(agent), queueDepth }
  })
  offers.forEach((offer, number) => {
    const base = skills[number % skills.length]
    index.put(`id-${number}`, `agent-${number}`, offer)
    index.setVectors(`id-${number}`, { agent: near(base), skills: [{ text: near(base), examples: [] }] })
  })
  const times: number[] = []
  let same = 0
  for (const [at, { query }] of texts.slice(0, 220).entries()) {
    const whole = near(skills[Math.floor(next() * skills.length)])
    const meaning: QueryMeaning = { whole, parts: [], background: 0.3 }
    const wanted = request(query, defaultWeights)
    const from = performance.now()
    const { candidates } = index.rank(wanted, { meaning })
    if (at >= 20) times.push(performance.now() - from)
    if (at >= checks) continue
    const all = offers.map((offer, number) => {
      const { exactScore } = negotiate(offer, wanted, index.knowledgeOf(`id-${number}`, { meaning }))
      return { slug: `agent-${number}`, exactScore }
    })
    all.sort((a, b) => b.exactScore - a.exactScore || (a.slug < b.slug ? -1 : 1))
    const isSame = candidates.every(({ slug }, place) => slug === all[place]?.slug)
    if (isSame) same += 1
  }
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor(times.length * share)] ?? 0
  return { size, p50Ms: at(0.5), p99Ms: at(0.99), same: same / checks }
}

const figures = { words: await latency(false), meaning: await latency(true) }
const rss = { words: await memory(false), meaning: await memory(true) }
printTable(
  ['ranked by', 'p50 ms', 'p99 ms', 'RSS MB, 1,000 agents of ten skills'],
  (['words', 'meaning'] as const).map((mode) => [
    mode,
    figures[mode].p50Ms.toFixed(1),
    figures[mode].p99Ms.toFixed(1),
    rss[mode].toFixed(0),
  ]),
)
expectAtMost('negotiation of 10,000 agents with the encoder, p50', figures.meaning.p50Ms, 6, ' ms')
expectAtMost('negotiation of 10,000 agents with the encoder, p99', figures.meaning.p99Ms, 20, ' ms')
expectAtMost('memory of the gateway with the encoder, more', rss.meaning - rss.words, 200, ' MB')
const sizes = [await rankings(10_000), await rankings(100_000)]
console.log('\nranking with vectors, 10 candidates')
printTable(
  ['agents', 'p50 ms', 'p99 ms', 'same as scoring all'],
  sizes.map(({ size, p50Ms, p99Ms, same }) => [
    String(size),
    p50Ms.toFixed(1),
    p99Ms.toFixed(1),
    `${same * checks} of ${checks}`,
  ]),
)
for (const { size, same } of sizes) expectAtLeast(`exact rankings of ${size} agents`, same, 1)
await saveResults('encoder', { figures, rss, sizes })
