import { header, valueAt } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import { type Client, ids, rpc, settled, text, untilState, type World } from '../world.ts'

/** What the steps of this area share: one address that takes JSON-RPC calls, and two callers. */
interface Calls {
  recorder: Recorder
  url: string
  alice: Client
  bob: Client
  id: () => string
  /** Records one call of alice. */
  call: (title: string, method: string, params?: unknown, headers?: Record<string, string>) => Promise<string>
  /** Sends a text, waits until its task is settled, records the answer and the task. @returns the id of the task */
  run: (title: string, content: string, more?: object, configuration?: object) => Promise<string>
}

/** The JSON-RPC methods, the same calls for each address that takes them. */
export const rpcAt =
  (name: string, urlOf: (world: World) => string) =>
  async (recorder: Recorder, world: World): Promise<void> => {
    const [alice, bob] = [await world.client(recorder, 'alice'), await world.client(recorder, 'bob')]
    const [url, id] = [urlOf(world), ids(`rpc ${name}`)]
    const call: Calls['call'] = async (title, method, params, headers = {}) => {
      const sent = rpc(url, alice, method, params)
      const answer = await recorder.exchange(title, { ...sent, headers: { ...sent.headers, ...headers } })
      const task = valueAt(answer, 'result', 'id')
      return typeof task === 'string' ? task : ''
    }
    const run: Calls['run'] = async (title, content, more, configuration) => {
      const task = await call(title, 'message/send', text(id(), content, more, configuration))
      if (task === '') return task
      await settled(url, alice, task)
      await call(`${title}: the task`, 'tasks/get', { task_id: task })
      return task
    }
    const calls = { recorder, url, alice, bob, id, call, run }
    await envelopes(calls)
    await messages(calls)
    await refusedMessages(calls)
    await pauses(calls)
    await reading(calls)
    await cancelling(calls)
    await feedback(calls)
    await pushConfigs(calls)
    await contexts(calls)
    await idempotency(calls)
    await streams(calls)
  }

async function envelopes({ recorder, url, alice, call }: Calls): Promise<void> {
  const raw = (title: string, body: unknown, headers: Record<string, string> = {}, path = '') =>
    recorder.exchange(title, {
      method: 'POST',
      url: `${url}${path}`,
      headers: { authorization: `Bearer ${alice.token}`, 'content-type': 'application/json', ...headers },
      body,
    })
  await raw('empty body', '')
  await raw('not JSON', '{"jsonrpc":')
  await raw('not UTF-8', Buffer.from([0x22, 0xff, 0x22]))
  await raw('a batch', [{ jsonrpc: '2.0', id: 1, method: 'tasks/list' }])
  await raw('a scalar', '7')
  await raw('null', 'null')
  await raw('no id', { jsonrpc: '2.0', method: 'tasks/list' })
  await raw('id null', { jsonrpc: '2.0', id: null, method: 'tasks/list' })
  await raw('id true', { jsonrpc: '2.0', id: true, method: 'tasks/list' })
  await raw('id with a fraction', { jsonrpc: '2.0', id: 1.5, method: 'tasks/list' })
  await raw('id that is a number', { jsonrpc: '2.0', id: 12, method: 'tasks/list' })
  await raw('id that is empty', { jsonrpc: '2.0', id: '', method: 'tasks/list' })
  await raw('no jsonrpc', { id: '1', method: 'tasks/list' })
  await raw('jsonrpc 1.0', { jsonrpc: '1.0', id: '1', method: 'tasks/list' })
  await raw('no method', { jsonrpc: '2.0', id: '1' })
  await raw('method that is a number', { jsonrpc: '2.0', id: '1', method: 5 })
  await raw('unknown method', { jsonrpc: '2.0', id: '1', method: 'tasks/divine' })
  await raw('params that are an array', { jsonrpc: '2.0', id: '1', method: 'tasks/list', params: [] })
  await raw('params that are a text', { jsonrpc: '2.0', id: '1', method: 'tasks/list', params: 'all' })
  await raw('params null', { jsonrpc: '2.0', id: '1', method: 'tasks/list', params: null })
  await raw('key __proto__', '{"jsonrpc":"2.0","id":"1","method":"tasks/list","params":{"__proto__":{}}}')
  await raw(
    'nesting of 120 levels',
    `{"jsonrpc":"2.0","id":"1","params":${'['.repeat(120)}${']'.repeat(120)}}`,
  )
  await raw('duplicate keys', '{"jsonrpc":"2.0","id":"a","id":"b","method":"tasks/list"}')
  await raw('content type text', '{}', { 'content-type': 'text/plain' })
  await raw(
    'content type of a JSON dialect',
    { jsonrpc: '2.0', id: '1', method: 'tasks/list' },
    {
      'content-type': 'application/vnd.api+json; charset=utf-8',
    },
  )
  const list = { jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} }
  await raw('method as a path', list, {}, url.endsWith('/') ? 'tasks/list' : '/tasks/list')
  await raw('another method as a path', list, {}, url.endsWith('/') ? 'tasks/get' : '/tasks/get')
  await raw('unknown method as a path', list, {}, url.endsWith('/') ? 'tasks/divine' : '/tasks/divine')
  await recorder.exchange('GET', { url })
  await recorder.exchange('PUT', { method: 'PUT', url, body: {} })
  await recorder.exchange('GET of a method', { url: `${url}${url.endsWith('/') ? '' : '/'}tasks/list` })
  await recorder.exchange('without a token', { method: 'POST', url, body: list })
  await raw('with an unknown token', list, { authorization: 'Bearer nothing' })
  await raw('with basic credentials', list, { authorization: 'Basic YTpi' })
  await raw('with a request id', list, { 'x-request-id': 'my-request-1' })
  await call('tasks/list of a new caller', 'tasks/list', {})
  await call('contexts/list of a new caller', 'contexts/list', {})
}

async function messages({ call, run, id, recorder, alice, url }: Calls): Promise<void> {
  await run('a text', 'echo hello')
  await run('data', 'echo data')
  await run('a file', 'echo file')
  await run('an artifact', 'echo artifact')
  await run('several artifacts', 'echo several')
  await run('nothing', 'echo nothing')
  await run('tokens that were used', 'echo usage')
  await run('the caller', 'echo caller')
  await run('a failure', 'echo fail')
  await run('malformed output', 'echo malformed')
  await run('a refusal', 'echo decline')
  await run('text beyond ASCII', 'echo "é\u0000\u2028 𝄞" <&>')
  await run('metadata', 'echo meta', { metadata: { trace: 'abc', owner: 'mallory', payment_state: 'paid' } })
  await run('an unknown field', 'echo extra', { surprise: true, status: { state: 'completed' } })
  await run('role agent', 'echo role', { role: 'agent' })
  await run(
    'output modes',
    'echo modes',
    {},
    { acceptedOutputModes: ['text/plain;charset=utf-8', 'image/png'] },
  )
  await run('output modes in snake case', 'echo modes', {}, { accepted_output_modes: ['*/*'] })
  await run('long_running', 'echo long', {}, { long_running: true })
  await run('longRunning', 'echo long', {}, { longRunning: true })
  await run('history length', 'echo history', {}, { history_length: 0 })
  const [taskId, contextId] = [id(), id()]
  await run('ids of the caller', 'echo ids', { taskId, contextId })
  await run('the same context', 'echo again', { contextId })
  await run('a reference', 'echo references', { referenceTaskIds: [taskId], contextId })
  await run('a skill', 'echo skill', { metadata: { skill_id: 'echo' } })
  const parts = [
    { kind: 'text', text: 'echo files' },
    { kind: 'data', data: { a: 1, b: [true, null] } },
    {
      kind: 'file',
      file: { name: 'a.txt', mimeType: 'text/plain', bytes: Buffer.from('abc').toString('base64') },
    },
  ]
  const several = { role: 'user', kind: 'message', messageId: id(), parts }
  const task = await call('parts of every kind', 'message/send', { message: several })
  if (task !== '') {
    await settled(url, alice, task)
    await call('parts of every kind: the task', 'tasks/get', { task_id: task })
  }
  const snake = {
    role: 'user',
    kind: 'message',
    message_id: id(),
    context_id: contextId,
    parts: parts.slice(0, 1),
  }
  const other = await call('a message in snake case', 'message/send', { message: snake })
  if (other !== '') await settled(url, alice, other)
  const sent = rpc(url, alice, 'message/send', text(id(), 'echo path'))
  const path = url.endsWith('/') ? 'message/send' : '/message/send'
  const answer = await recorder.exchange('message/send as a path', { ...sent, url: `${url}${path}` })
  const made = valueAt(answer, 'result', 'id')
  if (typeof made === 'string') await settled(url, alice, made)
}

async function refusedMessages({ call, id, bob, url, recorder, run }: Calls): Promise<void> {
  const refused = (title: string, params: unknown) => call(`refused: ${title}`, 'message/send', params)
  const parts = [{ kind: 'text', text: 'echo refused' }]
  const message = (more: object) => ({ role: 'user', kind: 'message', messageId: id(), parts, ...more })
  await refused('no params', undefined)
  await refused('no message', {})
  await refused('a message that is a text', { message: 'hello' })
  await refused('no parts', { message: message({ parts: undefined }) })
  await refused('empty parts', { message: message({ parts: [] }) })
  await refused('a part of unknown kind', { message: message({ parts: [{ kind: 'song', song: 'la' }] }) })
  await refused('a text part without text', { message: message({ parts: [{ kind: 'text' }] }) })
  await refused('data that is a list', { message: message({ parts: [{ kind: 'data', data: [1] }] }) })
  await refused('a file without content', {
    message: message({ parts: [{ kind: 'file', file: { name: 'x' } }] }),
  })
  const file = { name: 'x', bytes: '§§' }
  await refused('a file that is not base64', { message: message({ parts: [{ kind: 'file', file }] }) })
  await refused('no messageId', { message: message({ messageId: undefined }) })
  await refused('a malformed messageId', { message: message({ messageId: 'one' }) })
  await refused('a malformed taskId', { message: message({ taskId: 'one' }) })
  await refused('a malformed contextId', { message: message({ contextId: 'one' }) })
  await refused('a malformed reference', { message: message({ referenceTaskIds: ['one'] }) })
  await refused('an unknown role', { message: message({ role: 'director' }) })
  await refused('another kind', { message: message({ kind: 'letter' }) })
  await refused('a missing reference', { message: message({ referenceTaskIds: [id()] }) })
  const configured = (configuration: object) => ({ message: message({}), configuration })
  await refused('output modes that cannot be met', configured({ acceptedOutputModes: ['image/png'] }))
  await refused('output modes that are a text', configured({ acceptedOutputModes: 'text/plain' }))
  await refused('a configuration that is a list', { message: message({}), configuration: [] })
  await refused('a webhook without url', configured({ push_notification_config: { id: id() } }))
  const inside = { id: id(), url: 'http://10.0.0.1/hook' }
  await refused('a webhook inside', configured({ push_notification_config: inside }))
  await refused('an unknown skill', { message: message({ metadata: { skill_id: 'nothing' } }) })
  const done = await run('a task that ends', 'echo done')
  await refused('a message to a task that has ended', { message: message({ taskId: done }) })
  const context = id()
  const elsewhere = await run('a task of a context', 'echo elsewhere', { contextId: context })
  await refused('a task of another context', { message: message({ taskId: elsewhere, contextId: id() }) })
  const foreign = (title: string, params: unknown) =>
    recorder.exchange(`foreign: ${title}`, rpc(url, bob, 'message/send', params))
  await foreign('message to a task', { message: message({ taskId: done }) })
  await foreign('message in a context', { message: message({ contextId: context }) })
  await foreign('reference to a task', { message: message({ referenceTaskIds: [done] }) })
}

async function pauses({ call, run, id, alice, url }: Calls): Promise<void> {
  const proceed = async (title: string, taskId: string, parts: object[]) => {
    const message = { role: 'user', kind: 'message', messageId: id(), taskId, parts }
    if ((await call(title, 'message/send', { message })) === '') return
    await settled(url, alice, taskId)
    await call(`${title}: the task`, 'tasks/get', { task_id: taskId })
  }
  const ask = await run('a question', 'echo ask')
  await call(
    'reference to a task that waits',
    'message/send',
    text(id(), 'echo references', { referenceTaskIds: [ask] }),
  )
  await proceed('the answer to a question', ask, [{ kind: 'text', text: 'Ada' }])
  const auth = await run('a sign-in', 'echo auth')
  await proceed('after a sign-in', auth, [{ kind: 'text', text: 'done' }])
  const bid = await run('a bid', 'echo bid')
  await proceed('a bid answered with a text', bid, [{ kind: 'text', text: 'well' }])
  await proceed('an accepted bid', bid, [{ kind: 'data', data: { accept: true } }])
  const other = await run('another bid', 'echo bid')
  await proceed('a refused bid', other, [{ kind: 'data', data: { accept: false } }])
}

async function reading({ call, run, id, recorder, url, alice, bob }: Calls): Promise<void> {
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

async function cancelling({ call, run, id, recorder, url, alice, bob }: Calls): Promise<void> {
  const running = await call('a task that runs', 'message/send', text(id(), 'echo wait'))
  if (running !== '') {
    await untilState(url, alice, running, (state) => state === 'working')
    await call('tasks/get of a task that runs', 'tasks/get', { task_id: running })
    await call('message to a task that runs', 'message/send', text(id(), 'echo more', { taskId: running }))
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

async function feedback({ call, run, id, recorder, url, bob }: Calls): Promise<void> {
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

async function pushConfigs({ call, run, id, recorder, url, bob }: Calls): Promise<void> {
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
  await set('an address that is no URL', { ...config, url: 'hooks' })
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

async function contexts({ call, run, id, recorder, url, alice, bob }: Calls): Promise<void> {
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
  await call('contexts/clear again', 'contexts/clear', { context_id })
  await call('contexts/clear without an id', 'contexts/clear', {})
  await call('contexts/clear of a malformed id', 'contexts/clear', { contextId: 'one' })
  await call('a task of a cleared context', 'tasks/get', { task_id: waiting })
}

async function idempotency({ call, id, url, alice, recorder, bob }: Calls): Promise<void> {
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

async function streams({ call, id, run, recorder, url, alice, bob }: Calls): Promise<void> {
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
