import { verifyPart } from '@parley/kit/did/part-signature'
import type { JsonObject } from '@parley/wire/model/task'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { HandlerContext } from '../../author/context.ts'
import { artifact, file, type Output, part } from '../../author/output.ts'
import { type TestAgent, testAgent } from '../../testing.ts'
import { resultOf } from '../methods/model-call.cases.ts'

let handle: (context: HandlerContext) => Output | Promise<Output> | AsyncGenerator<Output>
let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent(
    {
      handle: (context) => handle(context),
      skills: [{ id: 's', name: 'S', description: 'S' }],
    },
    { env: { ARTIFACT_MAX_BYTES: '1000' } },
  )
})
afterAll(() => agent[Symbol.asyncDispose]())

const ended = async (by: typeof handle, contextId?: string) => {
  handle = by
  const { id } = await agent
    .caller('alice')
    .sendAndWait({ text: 'hello', ...(contextId !== undefined && { contextId }) })
  return resultOf(agent, 'getTask', { taskId: id })
}

test('reply completes the task with a message: in the status and in the history, without an artifact', async () => {
  const task = await ended(({ reply }) => reply('good morning'))
  expect(task).toMatchObject({
    answersByMessage: true,
    artifacts: [],
    status: {
      state: 'completed',
      message: { role: 'agent', parts: [{ kind: 'text', text: 'good morning' }], taskId: task.id },
    },
  })
  expect(task.history.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(task.history[1]?.messageId).toBe(task.status.message?.messageId)
  const events = await resultOf(agent, 'listTaskEvents', { taskId: task.id, afterSequence: 0, limit: 9 })
  expect(events.events.map((event) => event.kind)).toEqual(['status-update', 'status-update'])
  expect(events.events[1]).toMatchObject({ final: true, status: { message: { parts: [{ kind: 'text' }] } } })
})

test('the parts of a reply are signed like those of artifacts', async () => {
  const { status } = await ended(({ reply }) => reply(['a', { b: 1 }, file('c.txt', 'text/plain', 'c')]))
  const parts = status.message?.parts ?? []
  expect(parts.map(({ kind }) => kind)).toEqual(['text', 'data', 'file'])
  const given = parts[0]?.metadata?.['did.message.key']
  const keys = typeof given === 'string' ? [given] : []
  expect(parts.map((one) => verifyPart(one, keys))).toEqual(['verified', 'verified', 'verified'])
})

test('the outputs that a handler yielded before the reply begin the message', async () => {
  const { status, artifacts } = await ended(async function* ({ reply }) {
    yield 'one, '
    yield reply('two')
  })
  expect(artifacts).toEqual([])
  expect(status.message?.parts).toMatchObject([{ text: 'one, ' }, { text: 'two' }])
})

test.each<[string, typeof handle, number]>([
  [
    'named artifacts',
    async function* ({ reply }) {
      yield artifact('table', 'a,b')
      yield reply('see the table')
    },
    1,
  ],
  ['asTask', ({ reply }) => reply('done', { asTask: true }), 0],
])('a reply with %s keeps the task as the answer', async (_title, by, count) => {
  const task = await ended(by)
  expect(task.status).toMatchObject({ state: 'completed', message: { parts: [{ kind: 'text' }] } })
  expect(task.artifacts).toHaveLength(count)
  expect(task.answersByMessage).toBeUndefined()
})

test('a later task of the context sees the text of the reply', async () => {
  const first = await ended(({ reply }) => reply('the answer is 42'))
  const second = await ended(({ context }) => context.history.map(({ text }) => text).join(), first.contextId)
  expect(second.artifacts[0]?.parts).toMatchObject([{ text: 'the answer is 42' }])
})

test.each<[string, typeof handle, RegExp]>([
  ['a reply that is too large', ({ reply }) => reply('x'.repeat(1001)), /larger than 1000 bytes/],
  ['a reply of a malformed part', ({ reply }) => reply([part({ kind: 'text', text: 1 as never })]), /part/],
  ['a file with neither bytes nor URI', () => part({ kind: 'file', file: {} }), /neither bytes nor/],
  [
    'a file with a URI of another scheme',
    () => part({ kind: 'file', file: { uri: 'file:///etc/passwd' } }),
    /neither bytes nor/,
  ],
  ['a media type that is a number', () => part({ kind: 'text', text: 'a', mediaType: 1 as never }), /string/],
  ['metadata that is no object', () => part({ kind: 'text', text: 'a', metadata: [] as never }), /object/],
  ['extensions that are no array', () => artifact({ name: 'a', extensions: 'u' as never }, 'a'), /array/],
  ['a description that is a number', () => artifact({ name: 'a', description: 1 as never }, 'a'), /string/],
  [
    'metadata of an artifact that is too large',
    () => artifact({ name: 'a', metadata: large() }, 'a'),
    /larger/,
  ],
])('%s fails the task', async (_title, by, reason) => {
  const { status } = await ended(by)
  expect(status.state).toBe('failed')
  expect(JSON.stringify(status.message?.parts)).toMatch(reason)
})

const large = (): JsonObject => ({ x: 'x'.repeat(1001) })

test('artifacts keep description, metadata and extensions; parts keep media type, file name and metadata', async () => {
  const metadata = { of: { the: 'author' } }
  const fields = { name: 'table', description: 'A table', metadata, extensions: ['https://e.example/x'] }
  const csv = { kind: 'text' as const, text: 'a,b', mediaType: 'text/csv', filename: 'table.csv', metadata }
  const link = { kind: 'file' as const, file: { uri: 'https://e.example/file', name: 'f' } }
  const { artifacts } = await ended(async function* () {
    yield 'plain'
    yield part(csv)
    yield 'plain again'
    yield artifact(fields, part(csv), part(link), part({ kind: 'data', data: { a: 1 }, filename: 'a.json' }))
  })
  expect(artifacts[0]).toMatchObject({ name: 'result' })
  expect(artifacts[0]?.parts).toMatchObject([{ text: 'plain' }, csv, { text: 'plain again' }])
  expect(artifacts[1]).toMatchObject(fields)
  expect(artifacts[1]?.parts).toMatchObject([csv, link, { data: { a: 1 }, filename: 'a.json' }])
  metadata.of.the = 'changed'
  expect(artifacts[1]?.metadata).toEqual({ of: { the: 'author' } })
})
