import { randomUUID } from 'node:crypto'
import { rpc } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
const skill = (outputModes: string[]) => ({
  id: outputModes.join('.').replaceAll('/', '-'),
  name: 'S',
  description: 'S',
  outputModes,
})
beforeAll(async () => {
  agent = await testAgent({
    skills: [skill(['text/plain']), skill(['application/json'])],
    handle: async ({ text, ask, history, signal }) => {
      if (text === 'ask' && history.length === 1) return ask('what?')
      if (text === 'wait') await new Promise((resolve) => signal.addEventListener('abort', resolve))
      if (text === 'fail') throw new Error('no')
      return text
    },
  })
})
afterAll(() => agent[Symbol.asyncDispose]())

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/
const message = (fields: object = {}) => ({
  role: 'user',
  kind: 'message',
  messageId: randomUUID(),
  parts: [{ kind: 'text', text: 'hi' }],
  ...fields,
})
const send = (params: object, headers: Record<string, string> = {}, who = 'alice') =>
  rpc(agent, 'message/send', params, { token: agent.caller(who).token, headers })
const sendMessage = (fields: object, who = 'alice') => send({ message: message(fields) }, {}, who)

test('the answer is the stored task in `submitted`, in snake_case with microseconds', async () => {
  const sent = message({ metadata: { camelKey: 1 }, referenceTaskIds: [] })
  const { status, json } = await send({ message: sent })
  expect(status).toBe(200)
  expect(json.result).toEqual({
    id: expect.stringMatching(uuid),
    context_id: expect.stringMatching(uuid),
    kind: 'task',
    status: { state: 'submitted', timestamp: expect.stringMatching(time) },
    history: [
      {
        role: 'user',
        kind: 'message',
        parts: sent.parts,
        message_id: sent.messageId,
        context_id: json.result.context_id,
        task_id: json.result.id,
        reference_task_ids: [],
        metadata: { camelKey: 1 },
      },
    ],
    artifacts: [],
  })
})

test('both spellings are accepted for every field', async () => {
  const [taskId, contextId] = [randomUUID(), randomUUID()]
  const { json } = await send({
    message: {
      role: 'user',
      message_id: randomUUID(),
      task_id: taskId,
      context_id: contextId,
      reference_task_ids: [],
      parts: [{ kind: 'file', file: { name: 'a', mime_type: 'text/plain', bytes: 'YQ==' } }],
    },
    configuration: { accepted_output_modes: ['text/plain'], long_running: false },
  })
  expect(json.result).toMatchObject({ id: taskId, context_id: contextId })
  expect(json.result.history[0].parts).toEqual([
    { kind: 'file', file: { name: 'a', mime_type: 'text/plain', bytes: 'YQ==' } },
  ])
})

test('unknown fields are ignored and not stored', async () => {
  const { json } = await send({
    message: message({
      owner: 'bob',
      status: 'completed',
      parts: [{ kind: 'text', text: 'x', owner: 'bob' }],
    }),
    owner: 'bob',
    configuration: { blocking: true, historyLength: 3 },
  })
  expect(JSON.stringify(json.result)).not.toContain('bob')
})

test.each<[string, object]>([
  ['no message', { message: undefined }],
  ['a text as message', { message: 'hi' }],
  ['no role', { message: message({ role: undefined }) }],
  ['an unknown role', { message: message({ role: 'admin' }) }],
  ['no messageId', { message: message({ messageId: undefined }) }],
  ['a malformed messageId', { message: message({ messageId: 'm-1' }) }],
  ['a malformed contextId', { message: message({ contextId: 'c-1' }) }],
  ['an empty contextId', { message: message({ contextId: '' }) }],
  ['a malformed taskId', { message: message({ taskId: '../../etc' }) }],
  ['a number as taskId', { message: message({ taskId: 7 }) }],
  ['a malformed reference', { message: message({ referenceTaskIds: ['x'] }) }],
  ['references as a text', { message: message({ referenceTaskIds: randomUUID() }) }],
  ['another kind', { message: message({ kind: 'task' }) }],
  ['no parts', { message: message({ parts: [] }) }],
  ['absent parts', { message: message({ parts: undefined }) }],
  ['parts as object', { message: message({ parts: { kind: 'text', text: 'a' } }) }],
  [
    '1,001 parts',
    { message: message({ parts: Array.from({ length: 1001 }, () => ({ kind: 'text', text: 'a' })) }) },
  ],
  ['a part of unknown kind', { message: message({ parts: [{ kind: 'video', text: 'a' }] }) }],
  ['a part without kind', { message: message({ parts: [{ text: 'a' }] }) }],
  ['a text part without text', { message: message({ parts: [{ kind: 'text' }] }) }],
  ['a number as text', { message: message({ parts: [{ kind: 'text', text: 7 }] }) }],
  ['data that is an array', { message: message({ parts: [{ kind: 'data', data: [] }] }) }],
  ['data that is a text', { message: message({ parts: [{ kind: 'data', data: '{}' }] }) }],
  ['data that is null', { message: message({ parts: [{ kind: 'data', data: null }] }) }],
  ['a file without bytes', { message: message({ parts: [{ kind: 'file', file: { name: 'a' } }] }) }],
  [
    'a file by another scheme',
    { message: message({ parts: [{ kind: 'file', file: { uri: 'file:///etc/passwd' } }] }) },
  ],
  [
    'a file by bytes and uri',
    { message: message({ parts: [{ kind: 'file', file: { bytes: '', uri: 'https://x.example/' } }] }) },
  ],
  ['bytes of odd letters', { message: message({ parts: [{ kind: 'file', file: { bytes: 'a*==' } }] }) }],
  ['bytes in base64url', { message: message({ parts: [{ kind: 'file', file: { bytes: '-_-_' } }] }) }],
  ['bytes of a wrong length', { message: message({ parts: [{ kind: 'file', file: { bytes: 'abc' } }] }) }],
  [
    'bytes with a line break',
    { message: message({ parts: [{ kind: 'file', file: { bytes: 'YWFh\nYWE=' } }] }) },
  ],
  ['metadata as a text', { message: message({ metadata: 'x' }) }],
  ['output modes as a text', { message: message(), configuration: { acceptedOutputModes: 'text' } }],
  ['an output mode that is a number', { message: message(), configuration: { acceptedOutputModes: [1] } }],
  ['configuration as array', { message: message(), configuration: [] }],
])('%s is rejected with -32602 and issues and creates no task', async (_name, params) => {
  const before = await agent.caller('nobody').list()
  const { status, json } = await send(params, {}, 'nobody')
  expect([status, json]).toMatchObject([400, { id: 'r-1', error: { code: -32602 } }])
  expect(json.error.data.issues[0]).toEqual({ path: expect.any(String), message: expect.any(String) })
  expect(await agent.caller('nobody').list()).toEqual(before)
})

test.each(['user', 'agent', 'assistant', 'system'])('role %s is accepted', async (role) => {
  expect((await sendMessage({ role })).status).toBe(200)
})

test('a null field counts as absent, because some clients write every field', async () => {
  const { status } = await send({
    message: message({
      taskId: null,
      contextId: null,
      referenceTaskIds: null,
      metadata: null,
      parts: [{ kind: 'text', text: 'a', metadata: null }],
    }),
    configuration: null,
  })
  expect(status).toBe(200)
})

test.each([
  [['text/plain']],
  [['TEXT/PLAIN; charset=utf-8']],
  [['application/json']],
  [['*/*']],
  [['text/*']],
  [['*']],
  [['text']],
  [['json']],
  [['text/event-stream']],
  [['image/png', 'text/plain']],
  [[]],
])('acceptedOutputModes %j can be satisfied', async (acceptedOutputModes) => {
  expect((await send({ message: message(), configuration: { acceptedOutputModes } })).status).toBe(200)
})

test.each([[['image/png']], [['image/*']], [['nonsense']], [['text/html']], [['']], [['toString']]])(
  'acceptedOutputModes %j cannot be satisfied: the message receives -32005 and creates no task',
  async (acceptedOutputModes) => {
    const { status, json } = await send(
      { message: message(), configuration: { acceptedOutputModes } },
      {},
      'nobody',
    )
    expect([status, json]).toMatchObject([
      400,
      { error: { code: -32005, data: { supported: ['text/plain', 'application/json'] } } },
    ])
    expect(await agent.caller('nobody').list()).toEqual([])
  },
)

test('an unknown taskId becomes the id of the new task and is -32008 once the task has ended', async () => {
  const [alice, taskId] = [agent.caller('alice'), randomUUID()]
  expect((await alice.sendAndWait({ text: 'a', taskId })).id).toBe(taskId)
  const before = await alice.get(taskId)
  const { status, json } = await sendMessage({ taskId })
  expect([status, json]).toMatchObject([
    400,
    { error: { code: -32008, data: { taskId, state: 'completed' } } },
  ])
  expect(await alice.get(taskId)).toEqual(before)
})

test('a failed, canceled or rejected task is also immutable', async () => {
  const alice = agent.caller('alice')
  const failed = await alice.sendAndWait('fail')
  const canceled = await alice.cancel((await alice.send('wait')).id)
  for (const { id } of [failed, canceled])
    expect((await sendMessage({ taskId: id })).json.error.code).toBe(-32008)
})

test('a message to a task that is `submitted` or `working` receives -32004 with the state', async () => {
  const alice = agent.caller('alice')
  const task = await alice.send('wait')
  const { status, json } = await sendMessage({ taskId: task.id })
  expect([status, json]).toMatchObject([400, { error: { code: -32004, data: { taskId: task.id } } }])
  expect(['submitted', 'working']).toContain(json.error.data.state)
  await alice.cancel(task.id)
})

test('a message continues a paused task, which returns to `submitted` and completes with the whole history', async () => {
  const alice = agent.caller('alice')
  const paused = await alice.sendAndWait('ask')
  expect(paused.status).toMatchObject({
    state: 'input-required',
    message: { role: 'agent', parts: [{ kind: 'text', text: 'what?' }] },
  })
  const answered = await alice.send({ text: 'that', taskId: paused.id })
  expect(answered.status).toEqual({ state: 'submitted', timestamp: expect.stringMatching(time) })
  const done = await alice.wait(paused.id)
  expect(done.history.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
  expect(done.history.map(({ parts }) => (parts[0] as { text: string }).text)).toEqual([
    'ask',
    'what?',
    'that',
    'that',
  ])
})

test('a taskId of one context with the contextId of another is rejected with -32602', async () => {
  const alice = agent.caller('alice')
  const paused = await alice.sendAndWait('ask')
  const { status, json } = await sendMessage({ taskId: paused.id, contextId: randomUUID() })
  expect([status, json.error.code]).toEqual([400, -32602])
  expect((await sendMessage({ taskId: paused.id, contextId: paused.context_id })).status).toBe(200)
})

test('an unknown contextId creates a context of the caller, and a task with a known contextId joins that context', async () => {
  const [alice, contextId] = [agent.caller('alice'), randomUUID()]
  const first = await alice.sendAndWait({ text: 'a', contextId })
  const second = await alice.sendAndWait({ text: 'b', contextId })
  expect([first.context_id, second.context_id]).toEqual([contextId, contextId])
  expect(first.id).not.toBe(second.id)
})

test('an id that another owner uses is refused with -32001 for taskId and -32020 for contextId without disclosing its use', async () => {
  const mine = await agent.caller('alice').sendAndWait('secret')
  const byTask = await sendMessage({ taskId: mine.id }, 'eve')
  expect([byTask.status, byTask.json.error]).toEqual([
    404,
    { code: -32001, message: 'Task not found', data: { taskId: mine.id } },
  ])
  const byContext = await sendMessage({ contextId: mine.context_id }, 'eve')
  expect([byContext.status, byContext.json.error]).toEqual([
    404,
    { code: -32020, message: 'Context not found', data: { contextId: mine.context_id } },
  ])
  expect(await agent.caller('eve').list()).toEqual([])
})

test('referenceTaskIds must name ended tasks: running tasks are -32004, and missing or foreign tasks are -32001', async () => {
  const alice = agent.caller('alice')
  const ended = await alice.sendAndWait('a')
  const running = await alice.send('wait')
  const missing = randomUUID()
  const refer = async (ids: string[], who = 'alice') =>
    (await sendMessage({ referenceTaskIds: ids }, who)).json
  expect(await refer([missing])).toMatchObject({ error: { code: -32001, data: { taskId: missing } } })
  expect(await refer([ended.id], 'eve')).toMatchObject({
    error: { code: -32001, data: { taskId: ended.id } },
  })
  expect(await refer([ended.id, running.id])).toMatchObject({
    error: { code: -32004, data: { taskId: running.id } },
  })
  expect((await refer([ended.id])).result.history[0].reference_task_ids).toEqual([ended.id])
  await alice.cancel(running.id)
})

test('requests with the same caller, Idempotency-Key and body receive the same task, whatever the envelope id', async () => {
  const params = { message: message() }
  const key = { 'idempotency-key': randomUUID() }
  const first = await send(params, key)
  await agent.caller('alice').wait(first.json.result.id)
  const again = await send(params, key)
  expect(again.json.result.id).toBe(first.json.result.id)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'other', method: 'message/send', params })
  const token = agent.caller('alice').token
  const third = await rpc(agent, '', {}, { body, token, headers: key })
  expect(third.json).toMatchObject({ id: 'other', result: { id: first.json.result.id } })
})

test('an Idempotency-Key with another body is -32602; another caller or a request without a key receives a new task', async () => {
  const params = { message: message() }
  const key = { 'idempotency-key': randomUUID() }
  const first = (await send(params, key)).json.result.id
  const other = await send({ message: message() }, key)
  expect([other.status, other.json.error.code]).toEqual([400, -32602])
  expect((await send(params, key, 'bob')).json.result.id).not.toBe(first)
  expect((await send(params)).json.result.id).not.toBe(first)
})

test('20 concurrent requests with one Idempotency-Key create one task that runs once', async () => {
  const params = { message: message() }
  const key = { 'idempotency-key': randomUUID() }
  const all = await Promise.all(Array.from({ length: 20 }, () => send(params, key, 'carol')))
  expect(new Set(all.map(({ json }) => json.result.id)).size).toBe(1)
  expect(await agent.caller('carol').list()).toHaveLength(1)
})

test('of 20 concurrent requests with one taskId and no key, one creates a task and the others are refused', async () => {
  const taskId = randomUUID()
  const { token } = agent.caller('dave')
  const same = message({ taskId, parts: [{ kind: 'text', text: 'wait' }] })
  const all = await Promise.all(
    Array.from({ length: 20 }, () => rpc(agent, 'message/send', { message: same }, { token })),
  )
  expect(all.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(new Set(all.flatMap(({ json }) => json.error?.code ?? []))).toEqual(new Set([-32004]))
  await agent.caller('dave').cancel(taskId)
})

test.each(['', 'x'.repeat(256)])(
  'the Idempotency-Key %j has an invalid length and is rejected with -32602',
  async (key) => {
    const { json } = await send({ message: message() }, { 'idempotency-key': key })
    expect(json.error.code).toBe(-32602)
  },
)
