import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { makeLog } from '@parley/kit/process/log'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import { trainingWords } from '@parley/negotiation/score/learning'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import type { Route } from '../store/routing-store.ts'
import { SqliteRoutingStore } from '../store/sqlite/routing.ts'
import { FeedbackRecorder, modelOf } from './feedback.ts'

let folder: string
let database: SqliteDatabase
let store: SqliteRoutingStore
let feedback: FeedbackRecorder
let ended: unknown[][]

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-lessons-'))
  await open()
})

afterEach(async () => {
  await database[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function open(learning = true): Promise<AgentIndex> {
  database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  store = new SqliteRoutingStore(database)
  ended = []
  const index = new AgentIndex()
  feedback = new FeedbackRecorder({
    store,
    log: makeLog({ level: 'silent', name: 'test' }),
    ended: (...told) => ended.push(told),
    model: learning ? modelOf(index) : undefined,
  })
  await feedback.load()
  return index
}

async function routed(text: string, over: Partial<Route> = {}): Promise<Route> {
  const words = feedback.wordsOf(text)
  const route: Route = {
    owner: 'alice',
    kind: 'task',
    id: crypto.randomUUID(),
    agent: 'sky',
    context: 'c1',
    at: Date.now(),
    ...(words && { words }),
    ...over,
  }
  await store.save([route])
  return route
}

const kept = async (count: number): Promise<TrainingExample[]> => {
  await expect.poll(async () => (await store.trainingExamples()).length).toBe(count)
  return store.trainingExamples()
}

test('a rated task adds its counted words as a training example, but never its text, owner or context', async () => {
  const text = 'Will it rain in Lisbon tomorrow'
  const route = await routed(text, { at: Date.now() - 5000 })
  feedback.recordOutcome(route, { state: 'completed', at: route.at + 1500 }, 4)
  const [lesson] = await kept(1)
  expect(lesson).toMatchObject({ agent: 'sky', outcome: 0.5, words: trainingWords(text) })
  expect(JSON.stringify(lesson)).not.toMatch(/Will it rain|alice|"c1"/)
  expect(ended).toEqual([['sky', 'completed', 1500, 'alice']])
})

/** Stores the decision with which the task of a route began, with a sentence vector. */
async function decided(route: Route, text: string, vector: string): Promise<void> {
  const features = { words: feedback.wordsOf(text), vector }
  const context = feedback.contextKey(route.owner, route.context ?? '')
  await store.queueDecision({
    id: route.id,
    owner: route.owner,
    at: 5,
    body: {},
    task: route.id,
    features,
    context,
  })
}

test('a rating after a restart adds the sentence vector of the task’s message', async () => {
  const route = await routed('rain in Lisbon')
  await decided(route, 'rain in Lisbon', 'AQID')
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed' }])
  await store[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  const index = await open()
  feedback.recordRating(route, 5)
  expect(await kept(1)).toMatchObject([
    { outcome: 1, words: trainingWords('rain in Lisbon'), vector: 'AQID', rated: true },
  ])
  expect(index.learned.size).toBe(1)
})

test('a failed task adds the sentence vector of its message', async () => {
  const route = await routed('rain in Lisbon')
  await decided(route, 'rain in Lisbon', 'AQID')
  feedback.recordOutcome(route, { state: 'failed' })
  expect(await kept(1)).toMatchObject([{ outcome: -1, vector: 'AQID' }])
})

test('a task whose words are those of a later message gets no sentence vector of the first one', async () => {
  const route = await routed('snow in Porto')
  await decided(route, 'rain in Lisbon', 'AQID')
  feedback.recordRating(route, 5)
  const [lesson] = await kept(1)
  expect([lesson?.words, lesson?.vector]).toEqual([trainingWords('snow in Porto'), undefined])
})

test('no sentence vector is added after the context was cleared', async () => {
  const route = await routed('rain in Lisbon')
  await decided(route, 'rain in Lisbon', 'AQID')
  await feedback.forgetContext('alice', 'c1')
  feedback.recordRating(route, 5)
  expect((await kept(1))[0]?.vector).toBeUndefined()
})

test('a completed task adds no training example until it is rated', async () => {
  const route = await routed('rain in Lisbon')
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed' }])
  expect([await store.trainingExamples(), ended.length]).toEqual([[], 1])
  await store[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  const index = await open()
  expect(index.learned.size).toBe(0)
  feedback.recordRating(route, 5)
  expect(await kept(1)).toMatchObject([{ outcome: 1, words: trainingWords('rain in Lisbon') }])
  expect(await store.find('alice', 'unrated', route.id)).toBeUndefined()
})

test('only the rated tasks of a context add their words to its training example', async () => {
  const rain = await routed('rain')
  const snow = await routed('snow')
  for (const { id } of [rain, snow])
    await feedback.recordHeartbeat('sky', [{ taskId: id, state: 'completed' }])
  feedback.recordRating(snow, 5)
  expect(await kept(1)).toMatchObject([{ outcome: 1, words: trainingWords('snow') }])
})

test('completed tasks without a rating that an earlier version stored as positive examples are ignored', async () => {
  const old = { agent: 'sky', caller: 'who', at: 1000, words: { rain: 1 } }
  for (const [context, outcome] of [0.5, 0.75, 1, -1].entries())
    await store.saveTrainingExample({ ...old, context: `k${context}`, outcome })
  await database[Symbol.asyncDispose]()
  expect((await open()).learned.size).toBe(2)
})

test('an outcome that is reported twice counts only once', async () => {
  const route = await routed('rain')
  feedback.recordOutcome(route, { state: 'failed' })
  await kept(1)
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed' }])
  expect((await kept(1))[0]?.outcome).toBe(-1)
  expect(ended).toHaveLength(1)
})

test.each([
  [5, 1],
  [3, 0],
  [1, -1],
])('a rating of %i counts %f, regardless of earlier outcomes', async (rating, outcome) => {
  const route = await routed('rain')
  feedback.recordOutcome(route, { state: 'failed' })
  await kept(1)
  feedback.recordRating(route, rating)
  await expect.poll(async () => (await store.trainingExamples())[0]?.outcome).toBe(outcome)
})

test('a heartbeat reports only tasks of its own agent', async () => {
  const route = await routed('rain')
  await feedback.recordHeartbeat('board', [{ taskId: route.id, state: 'failed' }])
  await feedback.recordHeartbeat('sky', [{ taskId: crypto.randomUUID(), state: 'failed' }])
  expect(await store.trainingExamples()).toEqual([])
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'failed' }])
  expect((await store.trainingExamples())[0]?.outcome).toBe(-1)
})

test('the tasks of one context form one training example, which is removed when the context is cleared', async () => {
  for (const text of ['rain in Lisbon', 'rain in Porto']) {
    const route = await routed(text)
    await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed', rating: 5 }])
  }
  const [lesson] = await store.trainingExamples()
  expect(lesson?.words['rain']).toBe(2 * (trainingWords('rain')['rain'] ?? 0))
  await feedback.forgetContext('bob', 'c1')
  expect(await store.trainingExamples()).toHaveLength(1)
  await feedback.forgetContext('alice', 'c1')
  expect(await store.trainingExamples()).toEqual([])
})

test('training examples survive a restart', async () => {
  const route = await routed('rain in Lisbon')
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed', rating: 5 }])
  await database[Symbol.asyncDispose]()
  const index = await open()
  expect(index.learned.size).toBe(1)
})

test('after another gateway has removed examples of an agent, only those that are left count', async () => {
  await database[Symbol.asyncDispose]()
  const index = await open()
  const example = { agent: 'sky', at: Date.now(), outcome: 1, rated: true, words: { rain: 1 } }
  await feedback.train({ ...example, context: 'k1', caller: 'ann' })
  await feedback.train({ ...example, context: 'k2', caller: 'bob' })
  await store.removeTrainingExamplesOfAgent('sky', 'bob')
  store.trainingExampleChanges = async () => ({ learned: [], forgotten: [], forgottenOf: ['sky'] })
  await feedback.sync()
  expect(index.learned.size).toBe(1)
  await store.removeTrainingExamplesOfAgent('sky')
  await feedback.sync()
  expect([index.learned.size, index.learned.knows('sky')]).toEqual([0, false])
})

test('a rating that an agent reports after the outcome counts once', async () => {
  const route = await routed('rain')
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed' }])
  await feedback.recordHeartbeat('board', [{ taskId: route.id, state: 'completed', rating: 1 }])
  expect(await store.trainingExamples()).toEqual([])
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed', rating: 5 }])
  const [rated] = await store.trainingExamples()
  expect(rated?.outcome).toBe(1)
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed', rating: 5 }])
  expect(await store.trainingExamples()).toEqual([rated])
  expect(ended).toHaveLength(1)
})

test('the duration of a task ends when its outcome is observed, whatever the clock of its agent says', async () => {
  const route = await routed('rain')
  feedback.recordOutcome(route, { state: 'completed', at: route.at + 3_600_000 })
  await expect.poll(() => ended.length).toBe(1)
  expect((ended[0] as number[])[2]).toBeLessThan(60_000)
})

test('a message without words adds no training example, but its outcome is recorded', async () => {
  const route = await routed('')
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed' }])
  expect(await store.trainingExamples()).toEqual([])
  expect(ended).toEqual([['sky', 'completed', undefined, 'alice']])
})

test('with ROUTE_LEARNING=no, outcomes are recorded, but no words are stored and nothing is learned', async () => {
  await database[Symbol.asyncDispose]()
  await open(false)
  const route = await routed('rain')
  expect(route.words).toEqual({})
  feedback.recordRating(route, 5)
  feedback.recordOutcome(route, { state: 'completed' })
  await feedback.recordHeartbeat('sky', [{ taskId: route.id, state: 'completed' }])
  expect(await store.trainingExamples()).toEqual([])
  expect(ended).toHaveLength(1)
})

test('expired entries are removed in small batches, and newer ones are kept', async () => {
  for (let at = 1; at <= 5; at += 1) await store.saveDecision({ id: String(at), at, body: {} })
  await routed('rain', { at: 2 })
  const young = await routed('rain', { at: 9 })
  const before = { routes: 5, claims: 0, keys: 5, decisions: 4, trainingExamples: 5, sentenceVectors: 0 }
  expect(await store.removeOld(before, 2)).toBeGreaterThan(0)
  expect(await store.findDecision('3')).toBeDefined()
  await store.removeOld(before, 2)
  expect(await store.findDecision('3')).toBeUndefined()
  expect(await store.findDecision('4')).toBeDefined()
  expect(await store.find('alice', 'task', young.id)).toEqual(young)
  expect(await store.agentsOf('alice', 5)).toEqual(['sky'])
})
