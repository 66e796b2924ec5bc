import { agents, numbersFrom, skillOf, texts } from '@parley/tools/testing/routing-list'
import { expect, test } from 'vitest'
import type { Offer } from '../score/offer.ts'
import type { NegotiationRequest } from '../score/request.ts'
import { defaultWeights } from '../score/weights.ts'
import { AgentIndex, type Ranking, type RankOptions } from './agent-index.ts'
import type { Restrictions } from './visibility.ts'

const dataOf = (ranking: Ranking) => ({ ...ranking, answerOf: undefined })
const pick = <T>(all: readonly T[], next: () => number): T => all[Math.floor(next() * all.length)] as T

function randomOffer(next: () => number): Offer {
  const about = pick(agents, next)
  const skills = Array.from({ length: 1 + Math.floor(next() * 4) }, (_, at) => ({
    ...skillOf(`skill-${at}`, pick(agents, next).description),
    inputModes: [pick(['text/plain', 'image/png', '*/*'], next)],
    outputModes: [pick(['text/plain', 'application/json'], next)],
    allowedTools: next() < 0.3 ? ['saw'] : [],
  }))
  return {
    name: about.name,
    description: about.description,
    skills,
    queueDepth: Math.floor(next() * 3),
    ...(next() < 0.3 && { price: { amount: (next() * 3).toFixed(2) } }),
  }
}

function randomRequest(next: () => number): NegotiationRequest {
  return {
    taskSummary: pick(texts, next).query,
    weights: defaultWeights,
    ...(next() < 0.3 && { inputMimeTypes: ['image/png'] }),
    ...(next() < 0.2 && { requiredTools: ['saw'] }),
    ...(next() < 0.2 && { maxCostAmount: '1' }),
    ...(next() < 0.5 && { minScore: 0.5 }),
  }
}

/** An index of random agents, some of them hidden or limited, and an index of what the caller sees. */
function indexes(next: () => number, count: number) {
  const [whole, visible] = [new AgentIndex(), new AgentIndex()]
  const hidden = new Set<string>()
  const limited = new Map<string, ReadonlySet<string>>()
  const offers = new Map<string, Offer>()
  for (let at = 0; at < count; at += 1) {
    const [id, offer] = [`agent-${at}`, randomOffer(next)]
    whole.put(id, `s-${id}`, offer)
    offers.set(id, offer)
    const chance = next()
    if (chance < 0.3) {
      hidden.add(id)
      if (next() < 0.2) whole.exclude(id, 'quarantined')
      continue
    }
    const allowed = offer.skills.filter(() => chance > 0.6 || next() < 0.5)
    const shown = allowed.length === 0 ? offer.skills : allowed
    if (shown.length < offer.skills.length) limited.set(id, new Set(shown.map((skill) => skill.id)))
    visible.put(id, `s-${id}`, { ...offer, skills: shown })
    if (next() > 0.1) continue
    for (const index of [whole, visible]) index.exclude(id, 'unreachable', true)
  }
  const restrictions: Restrictions = { hidden, limited, version: 1 }
  return { whole, visible, restrictions, offers }
}

test('a ranking for a caller equals the ranking of an index that holds only what the caller sees', () => {
  const next = numbersFrom(14)
  for (let round = 0; round < 12; round += 1) {
    const { whole, visible, restrictions } = indexes(next, 80)
    for (let at = 0; at < 15; at += 1) {
      const request = randomRequest(next)
      const options: RankOptions = { limit: pick([1, 5, 10, 100], next), evenAway: next() < 0.5 }
      expect(dataOf(whole.rank(request, { ...options, restrictions }))).toEqual(
        dataOf(visible.rank(request, options)),
      )
    }
  }
})

test('vectors of invisible skills do not count', () => {
  const next = numbersFrom(3)
  const { whole, visible, restrictions, offers } = indexes(next, 40)
  const vector = () => {
    const angle = next() * Math.PI
    return new Float32Array([Math.cos(angle), Math.sin(angle)])
  }
  for (const [id, { skills: own }] of offers) {
    const vectors = own.map(() => ({ text: vector(), examples: [vector()] }))
    whole.setVectors(id, { skills: vectors })
    const allowed = restrictions.limited.get(id)
    visible.setVectors(id, {
      skills: vectors.filter((_, place) => allowed === undefined || allowed.has(own[place]?.id ?? '')),
    })
  }
  for (let at = 0; at < 20; at += 1) {
    const request = randomRequest(next)
    const options = { meaning: { whole: vector(), parts: [vector()], background: 0.2 } }
    expect(dataOf(whole.rank(request, { ...options, restrictions }))).toEqual(
      dataOf(visible.rank(request, options)),
    )
  }
})

test('changed restrictions and changed agents apply to the next ranking', () => {
  const index = new AgentIndex()
  const offer = (text: string): Offer => ({
    name: 'a',
    description: '',
    queueDepth: 0,
    skills: [skillOf('a', text)],
  })
  index.put('a', 'a', offer('translates texts into French'))
  index.put('b', 'b', offer('translates texts into German'))
  const hidden = new Set(['a'])
  const restrictions = { hidden, limited: new Map<string, ReadonlySet<string>>(), version: 1 }
  const names = () =>
    index
      .rank({ taskSummary: 'translate a text', weights: defaultWeights }, { restrictions })
      .candidates.map(({ id }) => id)
  expect(names()).toEqual(['b'])
  index.put('c', 'c', offer('translates texts into Danish'))
  hidden.add('c')
  restrictions.version += 1
  expect(names()).toEqual(['b'])
  hidden.clear()
  restrictions.version += 1
  expect(names().toSorted()).toEqual(['a', 'b', 'c'])
})
