import type { RankedAgent } from '@parley/negotiation/index/agent-index'
import { defaultWeights } from '@parley/negotiation/score/weights'
import { expect, test } from 'vitest'
import { answerForAll, covering, needRequests, needsOut, onlyServer, servedNeeds } from './needs.ts'

const ranked = (id: string, exactScore: number, more: Partial<RankedAgent> = {}): RankedAgent => ({
  id,
  slug: id,
  canHandle: true,
  score: exactScore,
  exactScore,
  matchOdds: exactScore,
  confidence: 1,
  reasons: [],
  subscores: { skillMatch: 1, ioCompatibility: 1, performance: 1, load: 1, cost: 1 },
  skillMatches: [],
  queueDepth: 0,
  ...more,
})
const need = (text: string, ...able: RankedAgent[]) => ({ text, able })
const slugs = (needs: ReturnType<typeof servedNeeds>) => needs.map(({ server }) => server?.slug)

test('the input types apply to the first part and the output types to the last', () => {
  const taskSummary = 'Translate the letter, draw a chart and make a PDF'
  const wanted = { taskSummary, weights: defaultWeights, minScore: 0.5, maxCostAmount: '1' }
  const types = { inputMimeTypes: ['text/csv'], outputMimeTypes: ['application/pdf'] }
  const others = { weights: defaultWeights, minScore: 0.5, maxCostAmount: '1' }
  expect(needRequests({ ...wanted, ...types })).toEqual([
    { ...others, taskSummary: 'Translate the letter', inputMimeTypes: ['text/csv'] },
    { ...others, taskSummary: 'draw a chart' },
    { ...others, taskSummary: 'make a PDF', outputMimeTypes: ['application/pdf'] },
  ])
  expect(needRequests({ ...wanted, taskSummary: 'make a PDF', taskDetails: 'of the letter' })).toEqual([])
})

test('each part has its best agent', () => {
  const needs = servedNeeds([
    need('one', ranked('a', 0.9), ranked('b', 0.6)),
    need('two', ranked('b', 0.9), ranked('a', 0.6)),
    need('three'),
  ])
  expect(slugs(needs)).toEqual(['a', 'b', undefined])
  expect(onlyServer(needs)).toBeUndefined()
})

test('an agent within 0.05 of the best of each part serves all parts', () => {
  const needs = servedNeeds([
    need('one', ranked('a', 0.9), ranked('c', 0.85)),
    need('two', ranked('b', 0.9), ranked('c', 0.88)),
  ])
  expect(slugs(needs)).toEqual(['c', 'c'])
  expect(onlyServer(needs)?.slug).toBe('c')
  const farther = servedNeeds([
    need('one', ranked('a', 0.9), ranked('c', 0.84)),
    need('two', ranked('b', 0.9), ranked('c', 0.88)),
  ])
  expect(slugs(farther)).toEqual(['a', 'b'])
})

test('an agent that serves each part can do the whole, with the score of the part that it serves worst', () => {
  const needs = servedNeeds([need('one', ranked('a', 0.9)), need('two', ranked('a', 0.8))])
  const rejectionReason = 'the score is below the minimum'
  const whole = ranked('a', 0.5, { canHandle: false, rejectionReason, reasons: ['x', rejectionReason] })
  const answer = answerForAll(whole, needs)
  expect(answer).toMatchObject({
    canHandle: true,
    score: 0.8,
    reasons: ['x', 'serves each part of the request'],
  })
  expect(answer).not.toHaveProperty('rejectionReason')
})

test('the agents of the parts follow the best candidate', () => {
  const needs = servedNeeds([
    need('one', ranked('x', 0.9)),
    need('two', ranked('y', 0.9)),
    need('three', ranked('c', 0.9)),
  ])
  const candidates = ['a', 'b', 'c', 'd'].map((id, at) => ranked(id, 0.9 - at / 10))
  const wholes = [ranked('x', 0.4)]
  const shown = (limit: number) => covering(candidates, needs, { wholes, limit }).map(({ slug }) => slug)
  expect(shown(10)).toEqual(['a', 'x', 'y', 'c', 'b', 'd'])
  expect(shown(4)).toEqual(['a', 'x', 'y', 'c'])
  expect(shown(2)).toEqual(['a', 'x'])
  expect(shown(1)).toEqual(['a'])
  // The agent of the second part breaks a hard constraint of the whole request.
  expect(covering(candidates, needs, { wholes, limit: 10 })[2]).toMatchObject({
    canHandle: false,
    rejectionReason: 'can do a part of the request only',
  })
})

test('the text of a part is limited', () => {
  const [out] = needsOut(servedNeeds([need('x'.repeat(5000)), need('y')]))
  expect(out).toMatchObject({ position: 1, text: `${'x'.repeat(999)}…`, agent: null, score: 0 })
})
