import { makeLog } from '@parley/kit/process/log'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import { trainingWords } from '@parley/negotiation/score/learning'
import { skillOf } from '@parley/tools/testing/routing-list'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { callAddress, readCallAt } from '../forwarding/call-reader.ts'
import { textOf as messageText } from '../negotiation/requirements.ts'
import type { SqliteRoutingStore } from '../store/sqlite/routing.ts'
import { FeedbackRecorder, modelOf } from './feedback.ts'
import { NamedUses } from './named-uses.ts'
import { temporaryStore } from './testing.ts'

const log = makeLog({ level: 'silent', name: 'test' })
const minute = 60_000
const contextId = '0b2e3f60-7c1c-4b58-9d55-6f2f1f0f9a01'
let opened: Awaited<ReturnType<typeof temporaryStore>>
let store: SqliteRoutingStore
let index: AgentIndex
let feedback: FeedbackRecorder
let uses: NamedUses
let now: number

beforeEach(async () => {
  opened = await temporaryStore()
  store = opened.store
  index = new AgentIndex({ callersMin: 1 })
  for (const id of ['opera', 'garage']) index.put(id, id, { name: id, skills: [skillOf(id)], queueDepth: 0 })
  now = Date.now()
  open()
})

afterEach(() => opened[Symbol.asyncDispose]())

function open(learning = true): void {
  feedback = new FeedbackRecorder({
    store,
    log,
    ended: () => {},
    model: learning ? modelOf(index) : undefined,
  })
  uses = new NamedUses({ feedback, textOf: messageText, log, now: () => now })
}

function noteCall(owner: string, method: string, params: object): void {
  const headers = { 'content-type': 'application/json' }
  const address = callAddress('POST', '/', undefined)
  if (address === undefined) throw new Error('The path accepts calls')
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
  const request = { headers, method: 'POST', url: '/', query: undefined }
  uses.note(owner, 'opera', readCallAt(address, request, bytes))
}

const note = (owner: string, text: string) =>
  noteCall(owner, 'message/send', {
    message: {
      kind: 'message',
      messageId: crypto.randomUUID(),
      contextId,
      role: 'user',
      parts: [{ kind: 'text', text }],
    },
  })
const examples = () => store.trainingExamplesOf('opera')
const asked = ['tonight', 'on Sunday', 'in Milan', 'for children', 'next week', 'in English']
const textOf = (at: number) => `Which performance can we see ${asked[at % asked.length]}?`

test('a message becomes an example when its caller returns after ten minutes', async () => {
  expect(uses.isDue('alice', 'opera')).toBe(true)
  note('alice', textOf(0))
  expect(uses.isDue('alice', 'opera')).toBe(false)
  expect(uses.isDue('bob', 'opera')).toBe(true)
  expect(uses.isDue('alice', 'garage')).toBe(true)
  now += 9 * minute
  note('alice', textOf(1))
  now += minute
  expect(uses.isDue('alice', 'opera')).toBe(true)
  note('alice', textOf(2))
  await expect.poll(examples).toHaveLength(1)
  expect(await examples()).toMatchObject([
    { agent: 'opera', outcome: 1, used: true, words: trainingWords(textOf(0)) },
  ])
  expect(JSON.stringify(await examples())).not.toContain('alice')
})

test('repeated use by three callers raises the score, and the reasons name it', async () => {
  const request = {
    taskSummary: 'Which performance can we see?',
    weights: { skillMatch: 1, ioCompatibility: 0, performance: 0, load: 0, cost: 0 },
  }
  const rank = () => index.rank(request).candidates.find(({ id }) => id === 'opera')
  const before = rank()?.score ?? 0
  const callers = ['alice', 'bob', 'carol']
  for (let round = 0; round < 4; round += 1) {
    callers.forEach((caller, at) => note(caller, textOf(round + at)))
    now += 10 * minute
  }
  await expect.poll(examples).toHaveLength(9)
  expect(rank()?.score).toBeGreaterThan(before)
  expect(rank()?.reasons).toContain('learned: 3 callers used it again after similar tasks')
})

test('a caller has at most four examples for an agent', async () => {
  for (let round = 0; round < 8; round += 1) {
    note('alice', textOf(round))
    now += 10 * minute
  }
  const last = () => examples().then((all) => all.at(-1)?.words)
  await expect.poll(last).toEqual(trainingWords(textOf(6)))
  expect(await examples()).toHaveLength(4)
})

test('contexts/clear removes the examples of the caller, not those of others', async () => {
  for (const caller of ['alice', 'bob']) note(caller, textOf(0))
  now += 10 * minute
  for (const caller of ['alice', 'bob']) note(caller, textOf(1))
  await expect.poll(examples).toHaveLength(2)
  noteCall('alice', 'contexts/clear', { context_id: contextId })
  await expect.poll(examples).toHaveLength(1)
  now += 10 * minute
  note('alice', textOf(2))
  expect(await examples()).toHaveLength(1)
})

test('contexts/clear also removes a message whose example is being made', async () => {
  note('alice', textOf(0))
  now += 10 * minute
  note('alice', textOf(1))
  await uses.forget('alice', 'opera')
  await new Promise((resolve) => setImmediate(resolve))
  expect(await examples()).toEqual([])
})

test.each([
  ['without parts', 'message/send', { message: { kind: 'message', parts: 5 } }],
  ['of another method', 'tasks/get', { task_id: 'x' }],
  ['of an unknown method', 'nothing/here', {}],
  ['that clears no context', 'contexts/clear', { context_id: 7 }],
])('a call %s is not noted', async (_what, method, params) => {
  noteCall('alice', method, params)
  expect(uses.isDue('alice', 'opera')).toBe(true)
})

test('a message of names and numbers teaches nothing', async () => {
  note('alice', '12 34')
  now += 10 * minute
  note('alice', '12 34')
  await vi.waitFor(() => expect(uses.isDue('alice', 'opera')).toBe(false))
  expect(await examples()).toEqual([])
})

test('with ROUTE_LEARNING=no no message is read', () => {
  open(false)
  expect(uses.isDue('alice', 'opera')).toBe(false)
})
