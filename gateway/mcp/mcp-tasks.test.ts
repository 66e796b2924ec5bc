import { expect, test } from 'vitest'
import { gatewayForEachTest } from '../testing.ts'
import { mcpAgent, rpc, withTasks } from './testing.ts'

gatewayForEachTest({ MCP_TASK_AFTER_MS: '200' })

const call = (name: string, args: object, options: Parameters<typeof rpc>[2] = {}) =>
  rpc('tools/call', { name, arguments: args }, { capabilities: withTasks, ...options })
const get = async (taskId: string, options: Parameters<typeof rpc>[2] = {}) =>
  (await rpc('tasks/get', { taskId }, { capabilities: withTasks, ...options })).json
const statusOf = async (taskId: string, options: Parameters<typeof rpc>[2] = {}) =>
  (await get(taskId, options)).result.status

test('a long call returns a handle of its task, which ends with the result of the call', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  await mcpAgent('slow', () => promise)
  const { result } = (await call('slow__run', { text: 'go' })).json
  expect(result).toMatchObject({ resultType: 'task', status: 'working', ttlMs: expect.any(Number) })
  expect(await statusOf(result.taskId)).toBe('working')
  resolve('done')
  await expect.poll(() => statusOf(result.taskId)).toBe('completed')
  expect((await get(result.taskId)).result.result.content[0]).toEqual({ type: 'text', text: 'done' })
})

test('a short call answers in place, also for a client that supports tasks', async () => {
  await mcpAgent('quick', () => 'done')
  const { result } = (await call('quick__run', { text: 'go' })).json
  expect(result).toMatchObject({ resultType: 'complete', content: [{ text: 'done' }, {}] })
})

test("another caller's task does not exist", async () => {
  await mcpAgent('slow', ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
  const { taskId } = (await call('slow__run', { text: 'go' })).json.result
  expect((await get(taskId, { caller: 'mallory' })).error).toMatchObject({ code: -32602 })
  const canceled = await rpc('tasks/cancel', { taskId }, { capabilities: withTasks, caller: 'mallory' })
  expect(canceled.json.error).toMatchObject({ code: -32602 })
  const update = { taskId, inputResponses: { answer: { action: 'accept', content: { answer: 'x' } } } }
  const updated = await rpc('tasks/update', update, { capabilities: withTasks, caller: 'mallory' })
  expect(updated.json.error).toMatchObject({ code: -32602 })
  expect(await statusOf(taskId)).toBe('working')
})

test('a client that does not declare the extension is refused', async () => {
  const { status, json } = await rpc('tasks/get', { taskId: 'x' })
  expect([status, json.error.code]).toEqual([400, -32021])
})

test('a task is canceled, and a canceled task may be canceled again', async () => {
  await mcpAgent('slow', ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)))
  const { taskId } = (await call('slow__run', { text: 'go' })).json.result
  for (const _ of [1, 2]) {
    const { result } = (await rpc('tasks/cancel', { taskId }, { capabilities: withTasks })).json
    expect(result).toMatchObject({ resultType: 'complete' })
  }
  expect(await statusOf(taskId)).toBe('cancelled')
})

test('a declined task is completed with an error, and a failed task has failed', async () => {
  await mcpAgent('refuser', async ({ decline }) => {
    await new Promise((resolve) => setTimeout(resolve, 300))
    return decline('not today')
  })
  await mcpAgent('crasher', async () => {
    await new Promise((resolve) => setTimeout(resolve, 300))
    throw new Error('broken')
  })
  const declined = (await call('refuser__run', { text: 'go' })).json.result
  await expect.poll(() => statusOf(declined.taskId)).toBe('completed')
  const { result } = (await get(declined.taskId)).result
  expect(result).toMatchObject({ isError: true, content: [{ text: 'The task was declined: not today' }, {}] })
  const failed = (await call('crasher__run', { text: 'go' })).json.result
  await expect.poll(() => statusOf(failed.taskId)).toBe('failed')
  expect((await get(failed.taskId)).result.error).toMatchObject({ code: -32603 })
})

const name = { message: 'Your name?', schema: { type: 'object', properties: { name: { type: 'string' } } } }
const withForms = { capabilities: { ...withTasks, elicitation: {} } }

test('a client answers the requests of a paused task, one after the other', async () => {
  const questions = { first: name, second: name }
  const answers: Record<string, unknown> = {}
  await mcpAgent('asker', ({ ask, data }) => {
    Object.assign(answers, data)
    const open = Object.entries(questions).filter(([key]) => answers[key] === undefined)
    return open.length > 0 ? ask('Names?', { inputs: Object.fromEntries(open) }) : JSON.stringify(answers)
  })
  const { taskId } = (await call('asker__run', { text: 'go' }, withForms)).json.result
  const requestsOf = async () => Object.keys((await get(taskId, withForms)).result.inputRequests ?? {})
  expect(await requestsOf()).toEqual(['first', 'second'])
  const answer = (key: string) => ({ [key]: { action: 'accept', content: { name: key } } })
  const update = (inputResponses: object) => rpc('tasks/update', { taskId, inputResponses }, withForms)
  expect((await update({ unknown: { action: 'accept' } })).json.result).toEqual(
    expect.objectContaining({ resultType: 'complete' }),
  )
  await update(answer('first'))
  await expect.poll(requestsOf, { timeout: 10_000 }).toEqual(['second'])
  await update(answer('second'))
  await expect.poll(() => statusOf(taskId, withForms)).toBe('completed')
  const { content } = (await get(taskId, withForms)).result.result
  expect(JSON.parse(content[0].text)).toEqual({ first: { name: 'first' }, second: { name: 'second' } })
})
