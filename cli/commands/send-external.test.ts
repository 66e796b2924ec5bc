import { type ScriptedCall, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { contextId, task, taskId, textPart } from '@parley/tools/testing/wire-samples'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/
const card = 'GET /agents/echo/.well-known/agent.json'
const cardThatSays = (streaming: unknown) => ({
  [card]: () => ({
    status: 200,
    body: JSON.stringify({ capabilities: { streaming } }),
    type: 'application/json',
  }),
})
const ended = {
  ...task('completed'),
  artifacts: [{ artifact_id: 'a', name: 'result', parts: [textPart('Hi')] }],
}
const accepts = {
  'message/send': () => ({ result: task('submitted') }),
  'tasks/get': () => ({ result: ended }),
}
const send = (server: { url: string }, ...more: string[]) =>
  runCli(['send', 'echo', 'Hi', '--url', server.url, '--token', 'secret', ...more])
const sent = (calls: ScriptedCall[]) =>
  calls.filter(({ method }) => method.startsWith('message/')).map(({ params }) => params as never as Sent)
interface Sent {
  message: Record<string, unknown>
  configuration: unknown
}

test('an agent whose card disables streaming receives the message and is polled', async () => {
  await using server = await scriptedAgent({
    ...cardThatSays(false),
    'message/send': () => ({ result: task('submitted') }),
    'tasks/get': ({ earlier }) => ({ result: earlier < 2 ? task('working') : ended }),
  })
  expect(await send(server)).toMatchObject({ code: 0, stdout: 'Hi\n' })
  const methods = server.calls.map(({ method }) => method)
  expect(methods).toEqual([card, 'message/send', 'tasks/get', 'tasks/get', 'tasks/get'])
})

test('send prints an answer that has neither artifacts nor history', async () => {
  const { artifacts: _, history: _history, ...bare } = task('completed')
  await using server = await scriptedAgent({
    ...cardThatSays(false),
    ...accepts,
    'tasks/get': () => ({ result: bare }),
  })
  expect(await send(server)).toMatchObject({ code: 0, stdout: '' })
})

test.each([true, 'no', undefined])(
  'an agent whose card has streaming: %j receives message/stream',
  async (says) => {
    await using server = await scriptedAgent({ ...cardThatSays(says), ...accepts })
    await send(server)
    expect(server.calls.map(({ method }) => method)).toContain('message/stream')
  },
)

test('send adds contextId, taskId and acceptedOutputModes for a named agent', async () => {
  await using server = await scriptedAgent({ ...cardThatSays(false), ...accepts })
  await send(server)
  await send(server, '--no-wait')
  await send(server, '--no-wait', '--context', contextId)
  for (const { message, configuration } of sent(server.calls)) {
    expect(message).toMatchObject({
      taskId: expect.stringMatching(uuid),
      contextId: expect.stringMatching(uuid),
    })
    expect(configuration).toEqual({ acceptedOutputModes: ['*/*'] })
  }
  const [first, second, third] = sent(server.calls).map(({ message }) => message)
  expect(first?.['taskId']).not.toBe(second?.['taskId'])
  expect(third?.['contextId']).toBe(contextId)
})

test('a message for a known task uses the context of that task', async () => {
  await using server = await scriptedAgent({ ...cardThatSays(false), ...accepts })
  await send(server, '--task', taskId)
  expect(sent(server.calls)[0]?.message).toMatchObject({ taskId, contextId: ended.context_id })
})

test('send adds nothing for "-", because the gateway completes the message after choosing an agent', async () => {
  await using server = await scriptedAgent({ 'message/send': () => ({ result: task('submitted') }) })
  await runCli(['send', '-', 'Hi', '--no-wait', '--url', server.url, '--token', 'secret'])
  const [only] = sent(server.calls)
  expect(only?.message).not.toHaveProperty('taskId')
  expect(only?.message).not.toHaveProperty('contextId')
  expect(only).not.toHaveProperty('configuration')
})
