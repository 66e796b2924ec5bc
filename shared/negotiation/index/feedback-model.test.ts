import { skillOf } from '@parley/tools/testing/routing-list'
import { expect, test } from 'vitest'
import { trainingWords } from '../score/learning.ts'
import type { TrainingExample } from '../score/training-example.ts'
import { defaultWeights } from '../score/weights.ts'
import { AgentIndex } from './agent-index.ts'
import { vectorText } from './vector-store.ts'

const start = 1_800_000_000_000
const halfYear = 182 * 24 * 3600 * 1000
const asked = { taskSummary: 'What is on at the opera tonight?', weights: defaultWeights }

function theIndex(now: () => number = () => start, callersMin = 1): AgentIndex {
  const index = new AgentIndex({ now, perAgentMax: 20, callersMin })
  index.put('1', 'alpha', { name: 'Alpha', skills: [skillOf('Alpha')], queueDepth: 0 })
  index.put('2', 'beta', { name: 'Beta', skills: [skillOf('Beta')], queueDepth: 0 })
  return index
}

/** Requests of the same kind in different words. */
const details = [
  'in Milan',
  'with a friend',
  'near the river',
  'for little money',
  'without a reservation',
  'in a small hall',
]

const example = (number: number, more: Partial<TrainingExample> = {}): TrainingExample => ({
  agent: '2',
  context: `c${number}`,
  caller: `caller-${number}`,
  at: start,
  outcome: 1,
  words: trainingWords(`What is on at the opera tonight ${details[number % details.length]}?`),
  ...more,
})
const others = Array.from({ length: 6 }, (_, at) =>
  example(100 + at, { agent: '1', words: trainingWords(`mend the bicycle number ${at}`) }),
)

const matchOf = (index: AgentIndex) =>
  index.rank(asked).candidates.find(({ slug }) => slug === 'beta')?.subscores.skillMatch ?? 0

const five = [1, 2, 3, 4, 5].map((number) => example(number))

test.each<[string, TrainingExample[], number]>([
  ['three contexts', five.slice(0, 3), 1],
  ['one context in several lessons', [example(1), example(1), example(1), example(1)], 1],
  ['one text in several contexts', [1, 2, 3, 4, 5].map((at) => example(at, { words: example(1).words })), 1],
  ['four contexts, one of them rated 3', [...five.slice(0, 3), example(4, { outcome: 0 })], 1],
  [
    'five contexts of one caller, where two are required',
    five.map((one) => ({ ...one, caller: 'alice' })),
    2,
  ],
  [
    '10,000 ratings of one caller',
    Array.from({ length: 10_000 }, (_, at) => example(at, { caller: 'eve' })),
    2,
  ],
  ['tasks of other kinds', [1, 2, 3, 4, 5].map((at) => example(at, { words: { bicycl: 1, mend: 1 } })), 1],
])('%s do not raise the score of an agent', (_what, examples, callersMin) => {
  const index = theIndex(() => start, callersMin)
  index.learn(...others)
  const before = index.rank(asked).candidates.find(({ slug }) => slug === 'beta')
  index.learn(...examples)
  const after = index.rank(asked).candidates.find(({ slug }) => slug === 'beta')
  expect(after?.subscores.skillMatch).toBe(before?.subscores.skillMatch)
  expect(after?.reasons).toEqual(before?.reasons)
})

test.each([
  ['two callers', 2, (at: number) => `caller-${at % 2}`],
  ['one caller, where one is enough', 1, () => 'alice'],
])('four contexts of %s raise the score of an agent', (_what, callersMin, callerOf) => {
  const index = theIndex(() => start, callersMin)
  index.learn(...others)
  const before = matchOf(index)
  index.learn(...five.slice(0, 4).map((one, at) => ({ ...one, caller: callerOf(at) })))
  expect(matchOf(index)).toBeGreaterThan(before + 0.2)
  index.forgetContext('c2')
  expect(matchOf(index)).toBeCloseTo(before, 1)
})

test('repeated use by three callers raises the score of an agent, but less than ratings, and use by two callers does not', () => {
  const raised = (callers: number, more: Partial<TrainingExample>) => {
    const index = theIndex(() => start, 1)
    index.learn(...others)
    const before = matchOf(index)
    const words = (at: number) => ({ ...example(1).words, [`word${at}`]: 1 })
    const of = (at: number) => example(at, { caller: `caller-${at % callers}`, words: words(at), ...more })
    index.learn(...[1, 2, 3, 4, 5].map(of))
    return matchOf(index) - before
  }
  const use = { used: true }
  expect(raised(2, use)).toBeLessThanOrEqual(0)
  expect(raised(3, use)).toBeGreaterThan(0.1)
  expect(raised(3, {})).toBeGreaterThan(raised(3, use))
})

test('three failures do not count against an agent, and four do', () => {
  const index = new AgentIndex({ now: () => start })
  index.put('2', 'beta', { name: 'Opera', skills: [skillOf('Opera')], queueDepth: 0 })
  const before = matchOf(index)
  index.learn(...[1, 2, 3].map((at) => example(at, { outcome: -1 })))
  expect(matchOf(index)).toBe(before)
  index.learn(example(4, { outcome: -1 }))
  expect(matchOf(index)).toBeLessThan(before)
  expect(index.rank(asked).candidates[0]?.reasons).toContain(
    'learned: 4 similar tasks of 4 callers failed or were rated badly',
  )
})

test('names and numbers are not learned', () => {
  const text = 'Make a PDF of 12 pages for Mary Smith, 3rd floor. Yours, Ada'
  expect(Object.keys(trainingWords(text)).join(' ')).not.toMatch(/mari|smith|ada|\d/)
  expect(Object.keys(trainingWords(text))).toEqual(expect.arrayContaining(['pdf', 'page', 'floor']))
})

test('successful tasks make an agent discoverable by words that it never declared, and the reasons count its examples', () => {
  const index = theIndex()
  expect(matchOf(index)).toBeLessThan(0.1)
  index.learn(...others, ...five)
  const [best] = index.rank(asked).candidates
  expect(best).toMatchObject({ slug: 'beta', canHandle: true })
  expect(best?.reasons).toContain('learned: did 5 similar tasks well, as 5 callers rated')
})

test('failures count against the agent', () => {
  const index = theIndex()
  index.learn(...others, example(5), ...five.slice(0, 4).map((one) => ({ ...one, outcome: -1 })))
  expect(matchOf(index)).toBe(0)
})

test('contexts/clear removes everything learned from the context', () => {
  const index = theIndex()
  index.learn(...others)
  const before = index.rank(asked).candidates
  index.learn(...five)
  expect(matchOf(index)).toBeGreaterThan(0)
  for (const { context } of five) index.forgetContext(context)
  expect(index.rank(asked).candidates).toEqual(before)
})

test('courtesies and words of the material are not learned', () => {
  const text =
    'Hi! Please translate this for me, thanks:\n\nThe opera tonight has been cancelled because of the weather. Kind regards'
  expect(Object.keys(trainingWords(text)).join(' ')).not.toMatch(/\bhi\b|pleas|thank|opera|weather|regard/)
  expect(Object.keys(trainingWords(text))).toContain('translat')
})

test('a sentence vector makes examples similar that share no word with the request', () => {
  const axis = (at: number) => Float32Array.from({ length: 384 }, (_, place) => (place === at ? 1 : 0))
  const index = theIndex()
  for (const [id, at] of [
    ['1', 1],
    ['2', 2],
  ] as const)
    index.setVectors(id, { skills: [{ text: axis(at), examples: [] }] })
  const options = { meaning: { whole: axis(3), parts: [], background: 0 } }
  const matchOf = () =>
    index.rank(asked, options).candidates.find(({ slug }) => slug === 'beta')?.subscores.skillMatch ?? 0
  const before = matchOf()
  const words = { bicycl: 1 }
  index.learn(...others, ...five.map((one) => ({ ...one, words, vector: vectorText(axis(4)) })))
  expect(matchOf()).toBeLessThanOrEqual(before)
  index.learn(...five.map((one) => ({ ...one, words, vector: vectorText(axis(3)) })))
  expect(matchOf()).toBeGreaterThan(0.9)
})

test('examples lose weight over time, and their number per agent is limited', () => {
  let now = start
  const index = theIndex(() => now)
  const dropped = index.learn(...others, ...Array.from({ length: 30 }, (_, at) => example(at)))
  expect([dropped.map(({ context }) => context), index.learned.size]).toEqual([
    Array.from({ length: 10 }, (_, at) => `c${at}`),
    26,
  ])
  const fresh = matchOf(index)
  now += 4 * halfYear
  index.learned.refresh()
  expect(matchOf(index)).toBeLessThan(fresh)
})

test('a caller with many contexts displaces only its own examples', () => {
  const index = theIndex()
  index.learn(...Array.from({ length: 15 }, (_, at) => example(at)))
  const eves = Array.from({ length: 40 }, (_, at) => example(1000 + at, { caller: 'eve' }))
  const dropped = index.learn(...eves)
  expect(dropped.map(({ context }) => context)).toEqual(eves.slice(0, 35).map(({ context }) => context))
  const [other] = index.learn(example(2000, { caller: 'bob' }))
  expect([other?.caller, index.learned.size]).toEqual(['eve', 20])
})

test('an example never overrides a hard constraint', () => {
  const index = theIndex()
  index.learn(...others, ...five)
  const { candidates, excluded } = index.rank({ ...asked, outputMimeTypes: ['audio/wav'] })
  expect([candidates, excluded.map(({ slug }) => slug)]).toEqual([[], ['alpha', 'beta']])
})

test('the words of a text are stored in alphabetical order only', () => {
  expect(Object.keys(trainingWords('Tell me: which opera, tonight?'))).toEqual(
    Object.keys(trainingWords('Tell me: which opera, tonight?')).toSorted(),
  )
})
