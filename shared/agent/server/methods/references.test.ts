import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { testAgent } from '../../testing.ts'

const foreignId = '6a1de6e4-0c7f-4f0e-9a30-6f1f1c1b1a11'

const foreign = (over: object = {}) => ({
  id: foreignId,
  context_id: '6a1de6e4-0c7f-4f0e-9a30-6f1f1c1b1a12',
  kind: 'task',
  status: { state: 'completed', timestamp: '2026-01-01T00:00:00.000000+00:00' },
  history: [],
  artifacts: [
    {
      artifact_id: '6a1de6e4-0c7f-4f0e-9a30-6f1f1c1b1a13',
      name: 'table',
      parts: [{ kind: 'text', text: 'forty-two' }],
    },
  ],
  ...over,
})

const referring = (referenceTaskIds: string[]) => ({ text: 'sum it up', referenceTaskIds })

test('the agent reads a referenced task of another agent through the gateway with the token of the caller', async () => {
  await using gateway = await scriptedAgent({ 'tasks/get': () => ({ result: foreign() }) })
  await using agent = await testAgent(
    { handle: ({ references }) => references.map(({ text }) => text).join() },
    { env: { GATEWAY_URL: gateway.url } },
  )
  const alice = agent.caller('alice')
  const own = await alice.sendAndWait({ text: 'nothing' })
  const task = await alice.sendAndWait(referring([foreignId, own.id]))
  expect(task.artifacts[0]?.parts).toMatchObject([{ kind: 'text', text: 'forty-two,' }])
  expect(gateway.calls).toHaveLength(1)
  expect(gateway.calls[0]).toMatchObject({
    params: { task_id: foreignId, history_length: 0 },
    headers: { authorization: `Bearer ${alice.token}` },
  })
})

test('the output of a referenced task is stored when the message is accepted, even if it is large', async () => {
  const text = 'x'.repeat(400_000)
  let told = foreign({ artifacts: [{ artifact_id: foreignId, name: '', parts: [{ kind: 'text', text }] }] })
  await using gateway = await scriptedAgent({ 'tasks/get': () => ({ result: told }) })
  await using agent = await testAgent(
    {
      handle: ({ references, ask, history }) =>
        history.length < 2 ? ask('go on?') : String(references[0]?.text.length),
    },
    { env: { GATEWAY_URL: gateway.url } },
  )
  const alice = agent.caller('alice')
  const asked = await alice.sendAndWait(referring([foreignId]))
  told = foreign()
  const task = await alice.sendAndWait({ text: 'yes', taskId: asked.id })
  expect(task.artifacts[0]?.parts).toMatchObject([{ kind: 'text', text: '400000' }])
  expect(gateway.calls).toHaveLength(1)
})

test.each<[string, () => never | object, number]>([
  [
    'is not the caller’s',
    () => ({ error: { code: -32001, message: 'Task not found' }, status: 404 }),
    -32001,
  ],
  ['is answered with another task', () => ({ result: foreign({ id: crypto.randomUUID() }) }), -32001],
  ['is answered with nonsense', () => ({ result: 'yes' }), -32001],
  ['is answered with text that is not JSON', () => ({ status: 200, body: '<html>' }), -32001],
  [
    'has parts that are none',
    () => ({ result: foreign({ artifacts: [{ parts: [{ kind: 'odd' }] }] }) }),
    -32001,
  ],
  [
    'is larger than 8 MiB',
    () => ({
      result: foreign({
        artifacts: [
          { artifact_id: foreignId, name: '', parts: [{ kind: 'text', text: 'x'.repeat(9_000_000) }] },
        ],
      }),
    }),
    -32001,
  ],
  ['has not ended', () => ({ result: foreign({ status: { state: 'working', timestamp: '' } }) }), -32004],
])('a referenced task of another agent that %s is refused', async (_what, answer, code) => {
  await using gateway = await scriptedAgent({ 'tasks/get': answer as never })
  await using agent = await testAgent({ handle: () => 'done' }, { env: { GATEWAY_URL: gateway.url } })
  const alice = agent.caller('alice')
  await expect(alice.send(referring([foreignId]))).rejects.toMatchObject({
    code,
    data: { taskId: foreignId },
  })
  expect(await alice.list()).toEqual([])
})

test('without a gateway, or with an unreachable one, a task of another agent is -32001', async () => {
  for (const env of [{}, { GATEWAY_URL: 'http://127.0.0.1:1' }]) {
    await using agent = await testAgent({ handle: () => 'done' }, { env })
    await expect(agent.caller('alice').send(referring([foreignId]))).rejects.toMatchObject({ code: -32001 })
  }
})

test('at most ten referenced tasks are read from the gateway', async () => {
  await using gateway = await scriptedAgent({ 'tasks/get': () => ({ result: foreign() }) })
  await using agent = await testAgent({ handle: () => 'done' }, { env: { GATEWAY_URL: gateway.url } })
  const ids = Array.from({ length: 11 }, () => crypto.randomUUID())
  await expect(agent.caller('alice').send(referring(ids))).rejects.toMatchObject({ code: -32001 })
  expect(gateway.calls).toEqual([])
})

test('a message repeated with its key receives the same task, even if the referenced task is gone', async () => {
  let there = true
  const answer = () => (there ? { result: foreign() } : { status: 404, error: { code: -32001, message: '' } })
  await using gateway = await scriptedAgent({ 'tasks/get': answer as never })
  await using agent = await testAgent({ handle: () => 'done' }, { env: { GATEWAY_URL: gateway.url } })
  const alice = agent.caller('alice')
  const message = {
    role: 'user',
    kind: 'message',
    messageId: crypto.randomUUID(),
    parts: [{ kind: 'text', text: 'sum it up' }],
    referenceTaskIds: [foreignId],
  }
  const headers = { 'idempotency-key': 'k' }
  const send = () => alice.call('message/send', { message }, { headers }) as Promise<{ id: string }>
  const first = await send()
  there = false
  expect((await send()).id).toBe(first.id)
})
