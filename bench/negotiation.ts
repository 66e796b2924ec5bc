/** How long a ranking takes over 100 to 100,000 agents, made of the texts in `bench/data/routing`, varied; and what an agent costs. */
import { AgentIndex } from '../gateway/ranking/agent-index.ts'
import type { Offer } from '../shared/negotiation/offer.ts'
import { usualWeights } from '../shared/negotiation/usual.ts'
import { agents, numbersFrom, texts } from '../shared/testing/routing-list.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'
import { offerOf, request } from './support/routing-data.ts'

const sizes = [100, 1000, 10_000, 100_000]
const next = numbersFrom(7)
const pick = <T>(all: readonly T[]): T => all[Math.floor(next() * all.length)] as T

/** A description with words of another one, a name of its own and a load. */
function varied(number: number): Offer {
  const { name, description } = pick(agents)
  const others = pick(agents).description.split(' ')
  const from = Math.floor(next() * others.length)
  const words = description.split(' ').filter(() => next() > 0.15)
  const text = [...words, ...others.slice(from, from + 5)].join(' ')
  const offer = offerOf({ name: `${name} ${number}`, description: text })
  return { ...offer, queueDepth: next() < 0.8 ? 0 : Math.floor(next() * 5) }
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
    index.rank(request(query, usualWeights))
    return at < 100 ? undefined : performance.now() - from
  })
  const sorted = times.filter((time) => time !== undefined).sort((a, b) => a - b)
  const one = performance.now()
  index.put('one-more', 'one-more', varied(size))
  const oneMoreMs = performance.now() - one
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? 0
  return { size, loadMs, bytes, p50Ms: at(0.5), p99Ms: at(0.99), oneMoreMs }
}

const found = sizes.map(measure)
printTable(
  ['agents', 'p50 ms', 'p99 ms', 'load ms', 'one more ms', 'bytes an agent'],
  found.map(({ size, p50Ms, p99Ms, loadMs, oneMoreMs, bytes }) => [
    String(size),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
    loadMs.toFixed(0),
    oneMoreMs.toFixed(2),
    String(Math.round(bytes)),
  ]),
)
const p50 = (size: number) => found.find((one) => one.size === size)?.p50Ms ?? 0
const p99At10k = found.find(({ size }) => size === 10_000)?.p99Ms ?? 0
expectAtMost('p99 of ranking at 10,000 agents', p99At10k, 3, ' ms')
expectAtMost('p50 at 10,000 ÷ p50 at 100', p50(10_000) / p50(100), 10)
expectAtMost('p50 at 100,000 ÷ p50 at 1,000', p50(100_000) / p50(1000), 10)
await saveResults('negotiation', { found })
