import { taskIdOfKey } from '@parley/wire/model/chosen-task-id'
import { expect, test, vi } from 'vitest'
import { agent, bearer, call, fail, gatewayForEachTest, restart, saying } from './testing.ts'

gatewayForEachTest()

const weather = 'Weather forecast for any city'
const text = 'weather forecast'

/** A message for a new task, and the request that cancels the task. */
function newTask(more: object = {}) {
  const key = crypto.randomUUID()
  const taskId = taskIdOfKey(key)
  const headers = { 'idempotency-key': key }
  const params = saying(text, { taskId, ...more })
  return {
    taskId,
    headers,
    send: (as?: string) =>
      call('message/send', params, { ...headers, ...(as !== undefined && { authorization: bearer(as) }) }),
    cancel: (as?: string) =>
      call(
        'tasks/cancel',
        { task_id: taskId },
        { ...headers, ...(as !== undefined && { authorization: bearer(as) }) },
      ),
  }
}

const prevented = { code: -32001, data: { reason: 'prevented' } }
const refused = { code: -32008, data: { reason: 'prevented' } }

test('no agent is queried for a task whose id is derived from the key, even if an agent does not respond', async () => {
  const [sky, silent] = [await agent('sky', weather), await agent('board', 'Plays chess')]
  silent.on['tasks/get'] = () => new Promise(() => {})
  const task = newTask()
  const sent = await task.send()
  expect(sent.json.result).toMatchObject({ id: task.taskId })
  expect([sky.sent('tasks/get'), silent.sent('tasks/get')]).toEqual([[], []])
  expect((await task.send()).headers.get('x-agent')).toBe('sky')
  const got = await call('tasks/get', { task_id: task.taskId })
  expect(got.headers.get('x-agent')).toBe('sky')
})

test('a task that does not exist yet is canceled: its message reaches no agent, also after a restart', async () => {
  const sky = await agent('sky', weather)
  const [task, inContext, other] = [newTask(), newTask({ contextId: crypto.randomUUID() }), newTask()]
  expect((await task.cancel()).json.error).toMatchObject(prevented)
  expect((await task.cancel()).json.error).toMatchObject(prevented)
  expect((await inContext.cancel()).json.error).toMatchObject(prevented)
  expect((await task.send()).json.error).toMatchObject(refused)
  expect((await inContext.send()).json.error).toMatchObject(refused)
  await restart()
  await sky.register('sky', weather)
  expect((await task.send()).json.error).toMatchObject(refused)
  expect((await task.cancel()).json.error).toMatchObject(prevented)
  expect(sky.sent()).toEqual([])
  expect((await other.send()).status).toBe(200)
})

test('a message in a known context is refused as well', async () => {
  const sky = await agent('sky', weather)
  const contextId = crypto.randomUUID()
  await call('message/send', saying(text, { contextId }))
  const task = newTask({ contextId })
  await task.cancel()
  expect((await task.send()).json.error).toMatchObject(refused)
  expect(sky.sent()).toHaveLength(1)
})

test('other clients and ids that are not derived from the key prevent nothing', async () => {
  await agent('sky', weather)
  const task = newTask()
  expect((await task.cancel('mallory')).json.error).toMatchObject(prevented)
  const another = await call('tasks/cancel', { task_id: crypto.randomUUID() }, task.headers)
  expect(another.json.error).toMatchObject({ code: -32001 })
  expect(another.json.error.data).not.toHaveProperty('reason')
  expect((await task.send()).json.result).toMatchObject({ id: task.taskId })
})

test('after the gateway was replaced before the agent responded, the cancellation finds the agent', async () => {
  const sky = await agent('sky', weather)
  const task = newTask()
  sky.on['message/send'] = ({ params }) => {
    sky.take(params)
    return new Promise(() => {})
  }
  void task.send().catch(() => {})
  await vi.waitUntil(() => sky.sent().length > 0)
  await restart()
  await sky.register('sky', weather)
  const canceled = await task.cancel()
  expect(canceled.headers.get('x-agent')).toBe('sky')
  const [received] = sky.sent('tasks/cancel')
  expect(received?.headers['idempotency-key']).toBe(task.headers['idempotency-key'])
  expect(received?.params).toMatchObject({ task_id: task.taskId })
})

test('a cancellation waits for a message on its way, and follows it to the second agent', async () => {
  const [sky, cloud] = [await agent('sky', weather), await agent('cloud', weather)]
  const [inFirst, leave] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const busy = async (agentCall: Parameters<NonNullable<(typeof sky.on)[string]>>[0]) => {
    if (sky.sent().length + cloud.sent().length > 1)
      return (sky.sent().length > 0 ? cloud : sky).take(agentCall.params)
    inFirst.resolve()
    await leave.promise
    fail(agentCall.response, agentCall.id, 503, -32042, { reason: 'queue_full' })
    return undefined
  }
  for (const one of [sky, cloud]) {
    one.on['message/send'] = busy
    one.on['tasks/cancel'] = () => ({ id: task.taskId, kind: 'task', status: { state: 'canceled' } })
  }
  const task = newTask()
  const sent = task.send()
  await inFirst.promise
  const canceled = task.cancel()
  setTimeout(() => leave.resolve(), 200)
  const winner = (await sent).headers.get('x-agent')
  expect([sky.sent().length, cloud.sent().length]).toEqual([1, 1])
  expect((await canceled).headers.get('x-agent')).toBe(winner)
  expect([...sky.sent('tasks/cancel'), ...cloud.sent('tasks/cancel')]).toHaveLength(1)
})

test('after all agents have refused a message, its cancellation prevents a repetition', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/send'] = ({ response, id }) => fail(response, id, 503, -32042, { reason: 'queue_full' })
  const task = newTask()
  expect((await task.send()).status).toBe(503)
  expect((await task.cancel()).json.error).toMatchObject(prevented)
  delete sky.on['message/send']
  expect((await task.send()).json.error).toMatchObject(refused)
})
