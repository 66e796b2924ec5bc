import { setTimeout as wait } from 'node:timers/promises'
import { header, send, valueAt } from '../http.ts'
import { type Client, rpc, settled, text, untilState } from '../world.ts'
import type { Calls } from './rpc-calls.ts'

export async function reading({ call, run, id, recorder, url, alice, bob }: Calls): Promise<void> {
  const task = await run('a task to read', 'echo read')
  await call('tasks/get by taskId', 'tasks/get', { taskId: task })
  await call('tasks/get by id', 'tasks/get', { id: task })
  await call('tasks/get in upper case', 'tasks/get', { id: task.toUpperCase() })
  await call('tasks/get without history', 'tasks/get', { task_id: task, history_length: 0 })
  await call('tasks/get with one message', 'tasks/get', { task_id: task, historyLength: 1 })
  await call('tasks/get with a negative history', 'tasks/get', { task_id: task, history_length: -1 })
  await call('tasks/get without an id', 'tasks/get', {})
  await call('tasks/get of a malformed id', 'tasks/get', { task_id: 'one' })
  await call('tasks/get of an id that is a number', 'tasks/get', { task_id: 1 })
  await call('tasks/get of a missing task', 'tasks/get', { task_id: id() })
  await recorder.exchange('tasks/get of a foreign task', rpc(url, bob, 'tasks/get', { task_id: task }))
  await recorder.exchange('tasks/list of another caller', rpc(url, bob, 'tasks/list', {}))
  await call('tasks/list of two', 'tasks/list', { limit: 2, history_length: 0 })
  const page = await recorder.exchange(
    'tasks/list of one',
    rpc(url, alice, 'tasks/list', { limit: 1, history_length: 0 }),
  )
  const cursor = header(page, 'x-next-cursor') ?? ''
  recorder.hide(cursor, 'cursor')
  await call('tasks/list from a cursor', 'tasks/list', { limit: 1, cursor, history_length: 0 })
  await call('tasks/list by state', 'tasks/list', { state: 'rejected', history_length: 0 })
  await call('tasks/list of an unknown state', 'tasks/list', { state: 'asleep' })
  await call('tasks/list of an unknown context', 'tasks/list', { context_id: id() })
  await call('tasks/list with a limit of 0', 'tasks/list', { limit: 0 })
  await call('tasks/list with a limit of 1001', 'tasks/list', { limit: 1001 })
  await call('tasks/list from a malformed cursor', 'tasks/list', { cursor: '§' })
  await call('tasks/events', 'tasks/events', { task_id: task })
  await call('tasks/events after the first', 'tasks/events', { task_id: task, after_sequence: 1 })
  await call('tasks/events of a missing task', 'tasks/events', { task_id: id() })
  await call('tasks/events without an id', 'tasks/events', {})
  await call('extended card', 'agent/getAuthenticatedExtendedCard', {})
}

export async function cancelling({ call, run, id, recorder, url, alice, bob }: Calls): Promise<void> {
  const running = await call('a running task', 'message/send', text(id(), 'echo wait'))
  if (running !== '') {
    await untilState(url, alice, running, (state) => state === 'working')
    await call('tasks/get of a running task', 'tasks/get', { task_id: running })
    await call('message to a running task', 'message/send', text(id(), 'echo more', { taskId: running }))
    await recorder.exchange(
      'tasks/cancel of a foreign task',
      rpc(url, bob, 'tasks/cancel', { task_id: running }),
    )
    await call('tasks/cancel', 'tasks/cancel', { task_id: running })
    await call('tasks/cancel again', 'tasks/cancel', { task_id: running })
  }
  const paused = await run('a task that waits', 'echo ask')
  await call('tasks/cancel of a task that waits', 'tasks/cancel', { id: paused })
  await call('tasks/cancel of a missing task', 'tasks/cancel', { task_id: id() })
  await call('tasks/cancel without an id', 'tasks/cancel', {})
}

export async function feedback({ call, run, id, recorder, url, bob }: Calls): Promise<void> {
  const task_id = await run('a task to rate', 'echo rate')
  await call('tasks/feedback', 'tasks/feedback', { task_id, feedback: 'good', rating: 5 })
  await call('tasks/feedback again', 'tasks/feedback', {
    task_id,
    feedback: 'less good',
    rating: 2,
    metadata: { a: 1 },
  })
  await call('tasks/feedback without a rating', 'tasks/feedback', { task_id, feedback: 'good' })
  await call('tasks/feedback without a text', 'tasks/feedback', { task_id, rating: 5 })
  await call('tasks/feedback with a rating of 6', 'tasks/feedback', { task_id, feedback: 'good', rating: 6 })
  await call('tasks/feedback on a missing task', 'tasks/feedback', { task_id: id(), feedback: 'good' })
  await recorder.exchange(
    'tasks/feedback on a foreign task',
    rpc(url, bob, 'tasks/feedback', { task_id, feedback: 'bad', rating: 1 }),
  )
}

export async function pushConfigs({ call, run, id, recorder, url, bob }: Calls): Promise<void> {
  const task = await run('a task with webhooks', 'echo hooks')
  const method = (name: string) => `tasks/pushNotificationConfig/${name}`
  const config = { id: id(), url: 'https://hooks.example/a', token: 'secret' }
  const set = (title: string, push_notification_config: unknown, more: object = {}) =>
    call(`set: ${title}`, method('set'), { id: task, push_notification_config, ...more })
  await call('get before set', method('get'), { task_id: task })
  await call('list before set', method('list'), { id: task })
  await call('delete before set', method('delete'), { id: task, push_notification_config_id: config.id })
  await set('a webhook', config)
  await set('the same again', { ...config, url: 'https://hooks.example/b' }, { long_running: true })
  await set('with http authentication', {
    ...config,
    id: id(),
    authentication: { type: 'http', scheme: 'bearer' },
  })
  const apiKey = { type: 'apiKey', name: 'key', in: 'header' }
  await call('set in camel case', method('set'), {
    id: task,
    longRunning: true,
    pushNotificationConfig: { ...config, id: id(), authentication: apiKey },
  })
  await set('without an id', { url: config.url })
  await set('without a url', { id: id() })
  await set('malformed id', { ...config, id: 'one' })
  await set('an address that is not a URL', { ...config, url: 'hooks' })
  await set('ftp', { ...config, url: 'ftp://hooks.example' })
  await set('a private address', { ...config, url: 'http://192.168.1.1/' })
  await set('the address of cloud metadata', { ...config, url: 'http://169.254.169.254/latest' })
  await set('unknown authentication', { ...config, authentication: { type: 'magic' } })
  await set('http authentication without scheme', { ...config, authentication: { type: 'http' } })
  await set('no webhook', undefined)
  await call('set for a missing task', method('set'), { id: id(), push_notification_config: config })
  await call('get', method('get'), { task_id: task })
  await call('get without an id', method('get'), {})
  await call('get for a missing task', method('get'), { task_id: id() })
  await call('list', method('list'), { id: task })
  await call('list for a missing task', method('list'), { id: id() })
  for (const name of ['get', 'list', 'delete', 'set']) {
    const params = {
      id: task,
      task_id: task,
      push_notification_config_id: config.id,
      push_notification_config: config,
    }
    await recorder.exchange(`${name} for a foreign task`, rpc(url, bob, method(name), params))
  }
  await call('delete', method('delete'), { id: task, push_notification_config_id: config.id })
  await call('delete again', method('delete'), { id: task, push_notification_config_id: config.id })
  await call('delete without the id of the webhook', method('delete'), { id: task })
}

export async function contexts({ call, run, id, recorder, url, alice, bob }: Calls): Promise<void> {
  const context_id = id()
  await run('first task of a context', 'echo first', { contextId: context_id })
  const waiting = await run('second task of a context', 'echo ask', { contextId: context_id })
  const page = await recorder.exchange('contexts/list of one', rpc(url, alice, 'contexts/list', { limit: 1 }))
  const cursor = header(page, 'x-next-cursor') ?? ''
  recorder.hide(cursor, 'cursor of contexts')
  await call('contexts/list from a cursor', 'contexts/list', { limit: 1, cursor })
  await call('contexts/list with a limit of 0', 'contexts/list', { limit: 0 })
  await call('tasks/list of a context', 'tasks/list', { context_id, history_length: 0 })
  await call('contexts/clear with a task that waits', 'contexts/clear', { context_id })
  await call('the task is canceled', 'tasks/cancel', { task_id: waiting })
  await recorder.exchange(
    'contexts/clear of a foreign context',
    rpc(url, bob, 'contexts/clear', { context_id }),
  )
  await call('contexts/clear', 'contexts/clear', { context_id })
  await forgotten(url, alice, context_id)
  await call('contexts/clear again', 'contexts/clear', { context_id })
  await call('contexts/clear without an id', 'contexts/clear', {})
  await call('contexts/clear of a malformed id', 'contexts/clear', { contextId: 'one' })
  await call('a task of a cleared context', 'tasks/get', { task_id: waiting })
}

/** Waits until the gateway has removed its route to a cleared context, which it does after the response. */
async function forgotten(url: string, caller: Client, context_id: string): Promise<void> {
  if (url.includes('/agents/')) return
  for (let tries = 0; tries < 100; tries++) {
    const answer = await send(rpc(url, caller, 'contexts/clear', { context_id }))
    if (header(answer, 'x-agent') === undefined) return
    await wait(20)
  }
}

export async function idempotency({ call, id, url, alice, recorder, bob }: Calls): Promise<void> {
  const [params, headers] = [text(id(), 'echo once'), { 'idempotency-key': 'key-1' }]
  const task = await call('a send with an idempotency key', 'message/send', params, headers)
  if (task !== '') await settled(url, alice, task)
  await call('the same again', 'message/send', params, headers)
  await call('the same key with another text', 'message/send', text(id(), 'echo twice'), headers)
  await call('an idempotency key of 300 characters', 'message/send', params, {
    'idempotency-key': 'k'.repeat(300),
  })
  const sent = rpc(url, bob, 'message/send', text(id(), 'echo mine'))
  const other = { ...sent, headers: { ...sent.headers, ...headers } }
  const answer = await recorder.exchange('the same key of another caller', other)
  const theirs = valueAt(answer, 'result', 'id')
  if (typeof theirs === 'string') await settled(url, bob, theirs)
}

export async function streams({ call, id, run, recorder, url, alice, bob }: Calls): Promise<void> {
  const [taskId, paused] = [id(), id()]
  await call('stream of a text in pieces', 'message/stream', text(id(), 'echo stream', { taskId }))
  await call('stream of a text', 'message/stream', text(id(), 'echo hello'))
  await call('stream of artifacts', 'message/stream', text(id(), 'echo several'))
  await call('stream of a failure', 'message/stream', text(id(), 'echo fail'))
  await call('stream of a refusal', 'message/stream', text(id(), 'echo decline'))
  await call('stream of a question', 'message/stream', text(id(), 'echo ask', { taskId: paused }))
  await call('stream of the answer', 'message/stream', text(id(), 'Ada', { taskId: paused }))
  await call('stream without a message', 'message/stream', {})
  await call('stream to a task that has ended', 'message/stream', text(id(), 'echo more', { taskId }))
  const task = await run('a task to follow', 'echo follow')
  await call('tasks/resubscribe', 'tasks/resubscribe', { task_id: task })
  await call('tasks/resubscribe after the first event', 'tasks/resubscribe', {
    task_id: task,
    after_sequence: 1,
  })
  await call(
    'tasks/resubscribe with Last-Event-ID',
    'tasks/resubscribe',
    { id: task },
    { 'last-event-id': '2' },
  )
  await call(
    'tasks/resubscribe with a malformed Last-Event-ID',
    'tasks/resubscribe',
    { id: task },
    { 'last-event-id': 'x' },
  )
  await call('tasks/resubscribe to a missing task', 'tasks/resubscribe', { task_id: id() })
  await call('tasks/resubscribe without an id', 'tasks/resubscribe', {})
  await recorder.exchange(
    'tasks/resubscribe to a foreign task',
    rpc(url, bob, 'tasks/resubscribe', { task_id: task }),
  )
  const keyed = { ...rpc(url, alice, 'message/stream', text(id(), 'echo keyed')) }
  const withKey = { ...keyed, headers: { ...keyed.headers, 'idempotency-key': 'stream-1' } }
  await recorder.exchange('stream with an idempotency key', withKey)
  await recorder.exchange('the same stream again', withKey)
}
