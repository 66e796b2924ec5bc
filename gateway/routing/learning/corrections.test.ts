import { makeLog } from '@parley/kit/process/log'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import { trainingWords } from '@parley/negotiation/score/learning'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { DecisionRecord, Verdict } from '../store/routing-store.ts'
import type { SqliteRoutingStore } from '../store/sqlite/routing.ts'
import { Corrections } from './corrections.ts'
import { FeedbackRecorder, modelOf } from './feedback.ts'
import { temporaryStore } from './testing.ts'

let opened: Awaited<ReturnType<typeof temporaryStore>>
let store: SqliteRoutingStore
let feedback: FeedbackRecorder
let corrections: Corrections
let index: AgentIndex

beforeEach(async () => {
  opened = await temporaryStore()
  store = opened.store
  await open()
})

afterEach(() => opened[Symbol.asyncDispose]())

async function open(learning = true): Promise<void> {
  index = new AgentIndex()
  feedback = new FeedbackRecorder({
    store,
    log: makeLog({ level: 'silent', name: 'test' }),
    ended: () => {},
    model: learning ? modelOf(index) : undefined,
  })
  await feedback.load()
  corrections = new Corrections({ store, feedback })
}

const text = 'Will it rain in Lisbon tomorrow'

async function decision(id = 'd1', more: Partial<DecisionRecord> = {}): Promise<void> {
  const features = feedback.featuresOf(text)
  await store.saveDecision({
    id,
    owner: 'alice',
    at: 5,
    body: {},
    context: feedback.contextKey('alice', 'c1'),
    ...(features && { features }),
    ...more,
  })
}

const verdict = (more: Partial<Verdict> = {}): Verdict => ({
  verdict: 'wrong',
  by: 'bob',
  at: Date.now(),
  ...more,
})
const both = { chosen: 'sky', right: 'board' }
const outcomes = async () =>
  (await store.trainingExamples()).map(({ agent, outcome }) => `${agent} ${outcome}`).toSorted()

test('a correction is a negative example of the chosen agent and a positive one of the right agent', async () => {
  await decision()
  expect(await corrections.record('d1', verdict(), both)).toEqual({ notLearned: undefined })
  expect(await outcomes()).toEqual(['board 1', 'sky -1'])
  const [first] = await store.trainingExamples()
  expect(first).toMatchObject({ words: trainingWords(text), rated: true })
  expect(JSON.stringify(first)).not.toMatch(/Will it rain|bob|alice|"c1"/)
  expect((await store.findDecision('d1'))?.verdicts).toHaveLength(1)
  expect(index.learned.size).toBe(2)
})

test('without a right agent only the chosen agent gets an example, and the verdict right is a positive example', async () => {
  await decision()
  await corrections.record('d1', verdict(), { ...both, right: undefined })
  expect(await outcomes()).toEqual(['sky -1'])
  await corrections.record('d1', verdict({ verdict: 'right' }), { ...both, right: undefined })
  expect(await outcomes()).toEqual(['sky 1'])
})

test('a second verdict of the same person replaces the first, and others count separately', async () => {
  await decision()
  await corrections.record('d1', verdict(), both)
  await corrections.record('d1', verdict(), { chosen: 'sky', right: 'sea' })
  expect(await outcomes()).toEqual(['sea 1', 'sky -1'])
  expect(index.learned.knows('board')).toBe(false)
  await corrections.record('d1', verdict({ by: 'carol' }), both)
  expect(await outcomes()).toEqual(['board 1', 'sea 1', 'sky -1', 'sky -1'])
  expect(new Set((await store.trainingExamples()).map(({ caller }) => caller)).size).toBe(2)
})

test('concurrent verdicts of one person leave the examples of one of them', async () => {
  await decision()
  const given = ['board', 'sea', 'lake'].map((right) =>
    corrections.record('d1', verdict(), { chosen: 'sky', right }),
  )
  await Promise.all(given)
  expect(await outcomes()).toEqual(['lake 1', 'sky -1'])
})

test('the verdicts of one person have the same caller as the person’s rated tasks', async () => {
  await decision()
  const words = feedback.wordsOf('snow')
  const route = { owner: 'bob', kind: 'task', id: 't1', agent: 'sky', context: 'c2', at: 1, words } as const
  await store.save([route])
  feedback.recordRating(route, 5)
  await corrections.record('d1', verdict(), { chosen: 'sky', right: undefined })
  await expect.poll(outcomes).toEqual(['sky -1', 'sky 1'])
  expect(new Set((await store.trainingExamples()).map(({ caller }) => caller)).size).toBe(1)
})

test('clearing the context of the task removes the examples of corrections, and later verdicts add none', async () => {
  await decision()
  await decision('d2', { context: feedback.contextKey('alice', 'c2') })
  await corrections.record('d1', verdict(), both)
  await corrections.record('d2', verdict(), both)
  await feedback.forgetContext('bob', 'c1')
  expect(await outcomes()).toHaveLength(4)
  await feedback.forgetContext('alice', 'c1')
  expect(await outcomes()).toHaveLength(2)
  expect(index.learned.size).toBe(2)
  expect(await corrections.record('d1', verdict(), both)).toEqual({ notLearned: 'no_words' })
  expect(await outcomes()).toHaveLength(2)
})

test('a vector is kept with the words', async () => {
  await decision('d1', { features: { words: {}, vector: 'AQID' } })
  expect(await corrections.record('d1', verdict(), { chosen: 'sky', right: undefined })).toEqual({
    notLearned: undefined,
  })
  expect(await store.trainingExamples()).toMatchObject([{ words: {}, vector: 'AQID' }])
})

test.each([
  ['without words', { features: { words: {} } }, both, 'no_words'],
  ['without an agent', {}, { chosen: undefined, right: undefined }, 'no_agent'],
] as const)(
  'a verdict about a decision %s is recorded, with the reason why it adds no example',
  async (_, more, agents, notLearned) => {
    await decision('d1', more)
    expect(await corrections.record('d1', verdict(), agents)).toEqual({ notLearned })
    expect((await store.findDecision('d1'))?.verdicts).toHaveLength(1)
    expect(await store.trainingExamples()).toEqual([])
  },
)

test('with ROUTE_LEARNING=no, a verdict is recorded, and no words are stored', async () => {
  await open(false)
  expect(feedback.featuresOf(text)).toBeUndefined()
  await decision()
  expect(await corrections.record('d1', verdict(), both)).toEqual({ notLearned: 'learning_off' })
  expect((await store.findDecision('d1'))?.verdicts).toHaveLength(1)
  expect(await store.trainingExamples()).toEqual([])
})

test('a verdict about a missing decision is not recorded', async () => {
  expect(await corrections.record('d9', verdict(), both)).toBeUndefined()
  expect(await store.trainingExamples()).toEqual([])
})

test('the examples of corrections survive a restart', async () => {
  await decision()
  await corrections.record('d1', verdict(), both)
  await open()
  expect(index.learned.size).toBe(2)
})
