import { agents, numbersFrom, skillOf, texts } from '@parley/tools/testing/routing-list'
import { expect, test } from 'vitest'
import { trainingWords } from '../score/learning.ts'
import { negotiate } from '../score/negotiate.ts'
import type { Facts, Offer } from '../score/offer.ts'
import type { NegotiationRequest } from '../score/request.ts'
import type { TrainingExample } from '../score/training-example.ts'
import { defaultWeights, type Weights } from '../score/weights.ts'
import { AgentIndex, type RankedAgent, type RankOptions } from './agent-index.ts'
import type { AgentVectors, QueryMeaning } from './skill-vectors.ts'
import { vectorText } from './vector-store.ts'

const now = () => 1_800_000_000_000

interface Known {
  offers: Map<string, Offer>
  rules: Map<string, string>
  index: AgentIndex
}

/** The expected ranking, computed by scoring every agent individually. */
function oneByOne({ offers, rules, index }: Known, request: NegotiationRequest, options: RankOptions = {}) {
  const all = [...offers].filter(([id]) => !rules.has(id))
  const scored = all.map(([id, offer]) => ({
    id,
    slug: `s-${id}`,
    ...negotiate(offer, request, index.knowledgeOf(id, options)),
  }))
  const able = scored.filter(({ brokenConstraint }) => brokenConstraint === undefined)
  able.sort((a, b) => b.exactScore - a.exactScore || (a.slug < b.slug ? -1 : 1))
  return { candidates: able.slice(0, options.limit ?? 10), total: able.length }
}

const pick = <T>(all: readonly T[], next: () => number): T => all[Math.floor(next() * all.length)] as T

function randomFacts(next: () => number): Facts {
  return {
    queueDepth: next() < 0.6 ? 0 : Math.floor(next() * 6),
    ...(next() < 0.3 && { activeTasks: Math.floor(next() * 4) }),
    ...(next() < 0.4 && {
      measured: { samples: Math.floor(next() * 20), latencyMs: next() * 4000, successShare: next() },
    }),
    ...(next() < 0.3 && { price: { amount: (next() * 3).toFixed(2) } }),
  }
}

function randomOffer(next: () => number): Offer {
  const about = pick(agents, next)
  const skills = Array.from({ length: Math.floor(next() * 4) }, (_, at) => ({
    ...skillOf(`${pick(agents, next).name}-${at}`, pick(agents, next).description),
    inputModes: [pick(['text/plain', 'image/png', '*/*'], next)],
    outputModes: [pick(['text/plain', 'application/json'], next)],
    allowedTools: next() < 0.3 ? ['saw'] : [],
    performance: next() < 0.5 ? { avgProcessingTimeMs: Math.floor(next() * 5000) } : {},
  }))
  return { name: about.name, description: about.description, skills, ...randomFacts(next) }
}

function randomWanted(next: () => number): NegotiationRequest {
  const weight = () => (next() < 0.2 ? 0 : next())
  const weights: Weights =
    next() < 0.3
      ? defaultWeights
      : {
          skillMatch: weight(),
          ioCompatibility: weight(),
          performance: weight(),
          load: weight(),
          cost: weight(),
        }
  return {
    taskSummary: next() < 0.15 ? 'zzqx wvkj' : pick(texts, next).query,
    weights,
    minScore: next(),
    ...(next() < 0.3 && { maxLatencyMs: Math.floor(next() * 4000) }),
    ...(next() < 0.3 && { maxCostAmount: (next() * 3).toFixed(2) }),
    ...(next() < 0.2 && { inputMimeTypes: ['image/png'] }),
    ...(next() < 0.2 && { outputMimeTypes: ['application/json'] }),
    ...(next() < 0.1 && { forbiddenTools: ['saw'] }),
  }
}

const randomVector = (next: () => number): Float32Array => {
  const vector = Float32Array.from({ length: 384 }, () => next() - 0.5 + 0.2)
  const length = Math.hypot(...vector)
  return vector.map((value) => value / length)
}

function vectorsOf({ skills }: Offer, next: () => number): AgentVectors {
  return {
    ...(next() < 0.5 && { agent: randomVector(next) }),
    skills: skills.map(() => ({
      text: randomVector(next),
      examples: Array.from({ length: Math.floor(next() * 3) }, () => randomVector(next)),
    })),
  }
}

const randomMeaning = (next: () => number): QueryMeaning => ({
  whole: randomVector(next),
  parts: next() < 0.5 ? [] : [randomVector(next), randomVector(next)],
  background: next(),
})

const lessonFrom = (agent: string, next: () => number): TrainingExample => ({
  agent,
  context: `c-${Math.floor(next() * 1e9)}`,
  caller: pick(['ann', 'bob', 'eve'], next),
  at: now() - next() * 2e10,
  outcome: next() * 2 - 1,
  words: trainingWords(pick(texts, next).query),
  ...(next() < 0.5 && { vector: vectorText(randomVector(next)) }),
})

function change({ offers, rules, index }: Known, next: () => number, size: number): void {
  for (let count = 0; count < size; count += 1) {
    const id = String(Math.floor(next() * size))
    const offer = randomOffer(next)
    offers.set(id, offer)
    index.put(id, `s-${id}`, offer)
    const fate = next()
    if (fate < 0.1) {
      rules.set(id, 'unreachable')
      index.exclude(id, 'unreachable')
    } else if (fate < 0.2) {
      rules.delete(id)
      index.include(id)
    }
    if (next() < 0.1) {
      const { name = '', description = '', skills } = offer
      const facts = randomFacts(next)
      offers.set(id, { name, description, skills, ...facts })
      index.setFacts(id, facts)
    }
    if (next() < 0.7) index.setVectors(id, { ...vectorsOf(offer, next) })
    if (next() < 0.3) index.learn(lessonFrom(id, next))
    // Enough positive examples to raise the score.
    if (next() < 0.1)
      index.learn(...Array.from({ length: 12 }, () => ({ ...lessonFrom(id, next), outcome: next() })))
    if (next() < 0.1) {
      offers.delete(id)
      rules.delete(id)
      index.remove(id)
    }
  }
}

test.each([
  [1, 40],
  [2, 300],
  [3, 1200],
])('the ranking equals scoring every agent one by one (random registry %i of %i)', (seed, size) => {
  const next = numbersFrom(seed)
  const known: Known = { offers: new Map(), rules: new Map(), index: new AgentIndex({ now }) }
  for (let round = 0; round < 2; round += 1) {
    change(known, next, size)
    for (let asked = 0; asked < 15; asked += 1) {
      const request = randomWanted(next)
      const limit = pick([1, 10, 10, 50], next)
      const options = { limit, ...(next() < 0.6 && { meaning: randomMeaning(next) }) }
      const found = known.index.rank(request, options)
      const expected = oneByOne(known, request, options)
      expect(found.candidates).toEqual(expected.candidates)
      for (const answer of expected.candidates) expect(found.answerOf(answer.id)).toEqual(answer)
      for (const { id } of found.excluded) expect(found.answerOf(id)).toBeUndefined()
      expect([found.total, found.total + found.excludedTotal]).toEqual([expected.total, known.offers.size])
    }
  }
})

const plain = (text: string): NegotiationRequest => ({ taskSummary: text, weights: defaultWeights })
const slugs = (candidates: readonly RankedAgent[]) => candidates.map(({ slug }) => slug)

test('an excluded agent is reported with its rule and becomes a candidate again after include', () => {
  const index = new AgentIndex()
  index.put('1', 'weather', {
    name: 'weather',
    description: 'Forecasts',
    skills: [skillOf('Weather')],
    queueDepth: 0,
  })
  index.put('2', 'music', { name: 'music', description: 'Songs', skills: [skillOf('Music')], queueDepth: 0 })
  index.exclude('1', 'quarantined')
  expect(index.rank(plain('weather tomorrow'))).toMatchObject({
    candidates: [{ slug: 'music' }],
    excluded: [{ id: '1', slug: 'weather', rule: 'quarantined' }],
    excludedTotal: 1,
    total: 1,
  })
  index.include('1')
  expect(slugs(index.rank(plain('weather tomorrow')).candidates)).toEqual(['weather', 'music'])
})

test('an agent that `refuse` names is excluded, and the next agent takes its place', () => {
  const index = new AgentIndex()
  for (const slug of ['a', 'b', 'c'])
    index.put(slug, slug, { name: 'weather', skills: [skillOf('Weather')], queueDepth: 0 })
  const asked: string[] = []
  const refuse = (id: string) => {
    asked.push(id)
    return id === 'a' ? 'already tried' : undefined
  }
  const { candidates, excluded } = index.rank(plain('weather'), { limit: 1, refuse })
  expect([slugs(candidates), excluded, asked]).toEqual([
    ['b'],
    [{ id: 'a', slug: 'a', rule: 'already tried' }],
    ['a', 'b'],
  ])
})

test('an empty registry has no candidates', () => {
  const { answerOf, ...found } = new AgentIndex().rank(plain('weather'))
  expect(answerOf('1')).toBeUndefined()
  expect(found).toEqual({
    candidates: [],
    excluded: [],
    excludedTotal: 0,
    total: 0,
  })
})

test('a near meaning raises an agent that shares no words with the request, and the reasons state it', () => {
  const index = new AgentIndex()
  index.put('1', 'rain', { name: 'Rain', skills: [skillOf('Rain')], queueDepth: 0 })
  index.put('2', 'song', { name: 'Song', skills: [skillOf('Song')], queueDepth: 0 })
  index.setVectors('1', { skills: [{ text: new Float32Array([1, 0]), examples: [] }] })
  index.setVectors('2', { skills: [{ text: new Float32Array([0, 1]), examples: [] }] })
  const options = { meaning: { whole: new Float32Array([0.1, 0.99]), parts: [], background: 0.4 } }
  const [best] = index.rank(plain('qqq xyzzy'), options).candidates
  expect(best).toMatchObject({
    slug: 'song',
    canHandle: true,
    skillMatches: [{ reasons: ['its meaning is close to the request (0.99)'] }],
  })
  expect(best?.reasons).toContain('ranked by words and meaning')
  const [without] = index.rank(plain('song'), { withoutEmbeddings: 'the endpoint did not answer' }).candidates
  expect(without?.reasons).toContain('ranked by words only: the endpoint did not answer')
})

test('vectors for another number of skills are ignored, because the agent has changed since', () => {
  const index = new AgentIndex()
  index.put('1', 'rain', { name: 'Rain', skills: [skillOf('Rain'), skillOf('Snow')], queueDepth: 0 })
  index.setVectors('1', { skills: [{ text: new Float32Array([1, 0]), examples: [] }] })
  expect(
    index.knowledgeOf('1', { meaning: { whole: new Float32Array([1, 0]), parts: [], background: 0 } })
      .nearness,
  ).toBe(undefined)
})
