import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { status, task, taskId } from '@parley/tools/testing/wire-samples'
import { expect, test } from 'vitest'
import { AgentClient, RpcError } from './client.ts'

test('a call posts a JSON-RPC request with the bearer token and returns the result', async () => {
  await using agent = await scriptedAgent({ 'tasks/get': () => ({ result: task('working') }) })
  const client = new AgentClient({ url: `${agent.url}/agents/echo`, token: async () => 'secret' })
  expect(await client.get(taskId)).toEqual(task('working'))
  expect(agent.calls[0]).toMatchObject({
    path: '/agents/echo/',
    headers: { authorization: 'Bearer secret' },
    params: { task_id: taskId },
  })
})

test('send writes a message and its configuration as specified in spec/methods.md#messagesend', async () => {
  await using agent = await scriptedAgent({ 'message/send': () => ({ result: task('submitted') }) })
  const client = new AgentClient({ url: agent.url })
  await client.send({ text: 'hi', taskId }, { acceptedOutputModes: ['text/plain'] })
  expect(agent.calls[0]?.params).toEqual({
    message: {
      role: 'user',
      kind: 'message',
      messageId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      taskId,
      parts: [{ kind: 'text', text: 'hi' }],
    },
    configuration: { acceptedOutputModes: ['text/plain'] },
  })
})

test('a call throws an error with code, status, message, data and headers', async () => {
  const error = { code: -32001, message: 'Task not found', data: { taskId } }
  await using agent = await scriptedAgent({ 'tasks/get': () => ({ error, status: 404 }) })
  const thrown = await new AgentClient({ url: agent.url }).get(taskId).catch((e: unknown) => e)
  expect(thrown).toBeInstanceOf(RpcError)
  expect(thrown).toMatchObject({ ...error, status: 404 })
  expect((thrown as RpcError).headers.get('content-type')).toBe('application/json')
})

test.each([
  ['a page of a proxy', { status: 502, body: '<html>' }],
  ['an empty body', { status: 200, body: '' }],
  ['an array', { status: 200, body: '[]' }],
  ['an envelope without result', { status: 200, body: '{"jsonrpc":"2.0","id":1}' }],
  ['the answer to another request', { status: 200, body: '{"jsonrpc":"2.0","id":"x","result":1}' }],
  ['a malformed error', { status: 500, body: '{"error":"bad"}' }],
  ['a redirect', { status: 302, body: '' }],
])('%s instead of an envelope throws an RpcError with code 0', async (_, answer) => {
  await using agent = await scriptedAgent({ 'tasks/get': () => answer })
  const failed = new AgentClient({ url: agent.url }).get(taskId)
  await expect(failed).rejects.toMatchObject({ name: 'RpcError', code: 0, status: answer.status })
})

test('a refused connection throws a ConnectionError that names the address and the reason', async () => {
  const agent = await scriptedAgent({})
  await agent[Symbol.asyncDispose]()
  const failed = new AgentClient({ url: agent.url }).get(taskId)
  await expect(failed).rejects.toMatchObject({
    name: 'ConnectionError',
    message: `${agent.url}/: nothing is listening at this address`,
  })
})

test('the client stops reading an answer that exceeds the limit', async () => {
  await using agent = await scriptedAgent({ 'tasks/get': () => ({ result: 'x'.repeat(2000) }) })
  const failed = new AgentClient({ url: agent.url, responseMaxBytes: 1000 }).get(taskId)
  await expect(failed).rejects.toThrow(/larger than 1000 bytes/)
})

test('a timeout throws a ConnectionError, and an aborted signal throws the reason of the signal', async () => {
  await using agent = await scriptedAgent({ 'tasks/get': () => new Promise(() => undefined) })
  const client = new AgentClient({ url: agent.url, requestTimeoutMs: 30 })
  await expect(client.get(taskId)).rejects.toThrow(/no answer in time/)
  await expect(client.resubscribe(taskId).next()).rejects.toThrow(/Method not found/)
  const abort = AbortSignal.abort(new Error('mine'))
  await expect(client.get(taskId, { signal: abort })).rejects.toThrow('mine')
})

test('wait follows the stream to the end of the task', async () => {
  await using agent = await scriptedAgent({
    'tasks/get': ({ earlier }) => ({ result: task(earlier === 0 ? 'working' : 'completed') }),
    'tasks/resubscribe': () => ({ frames: [status(1, 'working'), status(2, 'completed')] }),
  })
  expect(await new AgentClient({ url: agent.url }).wait(taskId)).toEqual(task('completed'))
})

test('wait polls an agent that does not support streaming', async () => {
  await using agent = await scriptedAgent({
    'tasks/get': ({ earlier }) => ({ result: task(earlier < 3 ? 'working' : 'input-required') }),
    'tasks/resubscribe': () => ({ error: { code: -32004, message: 'no' }, status: 400 }),
  })
  const reached = await new AgentClient({ url: agent.url }).wait(taskId)
  expect(reached.status.state).toBe('input-required')
  expect(agent.calls.filter(({ method }) => method === 'tasks/resubscribe')).toHaveLength(1)
})

test('wait returns when the task reaches a requested state or has ended', async () => {
  await using agent = await scriptedAgent({
    'tasks/get': ({ earlier }) => ({ result: task(earlier === 0 ? 'input-required' : 'rejected') }),
    'tasks/resubscribe': () => ({ frames: [status(2, 'input-required')] }),
  })
  const client = new AgentClient({ url: agent.url })
  expect((await client.wait(taskId, { untilStates: ['completed'] })).status.state).toBe('rejected')
  expect((await client.wait(taskId, { untilStates: ['working'] })).status.state).toBe('rejected')
})

test('wait ends when its signal aborts', async () => {
  await using agent = await scriptedAgent({
    'tasks/get': () => ({ result: task('working') }),
    'tasks/resubscribe': () => ({ frames: [status(1, 'working')], after: 'silence' }),
  })
  const leave = new AbortController()
  const waiting = new AgentClient({ url: agent.url }).wait(taskId, { signal: leave.signal })
  leave.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
})
