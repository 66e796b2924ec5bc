import { valueAt } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import { ids, rpc, settled, text, type World } from '../world.ts'
import type { Calls } from './rpc-calls.ts'
import { cancelling, contexts, feedback, idempotency, pushConfigs, reading, streams } from './rpc-tasks.ts'

/** The JSON-RPC methods, with the same calls for each URL that accepts them. */
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
  await refused('a message that is a string', { message: 'hello' })
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
