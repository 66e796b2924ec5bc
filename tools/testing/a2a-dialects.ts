import { randomUUID } from 'node:crypto'
import { type RawAnswer, raw } from './raw-http.ts'

/** What every dialect states about a task. */
export interface SeenTask {
  id: string
  contextId: string
  /** As in Parley's own dialect, such as `input-required`. */
  state: string
  /** The IDs of the messages, oldest first. */
  messageIds: string[]
  /** The metadata of the status message. */
  metadata: Record<string, unknown>
}

export interface Outgoing {
  taskId?: string
  contextId?: string
  messageId?: string
  metadata?: object
  /** Default true. Parley's own dialect never waits. */
  waits?: boolean
}

/** A client of one dialect. Answers that are errors are thrown as `{ code, status }`. */
export interface DialectClient {
  name: string
  /** Whether the dialect shows the IDs that a client of A2A chose. */
  isA2a: boolean
  send(text: string, given?: Outgoing): Promise<SeenTask>
  get(id: string): Promise<SeenTask>
  cancel(id: string): Promise<SeenTask>
  /** Returns the states in the stream once the stream has ended. */
  subscribe(id: string): Promise<string[]>
  /** The IDs of the tasks of a context or of all, newest first; undefined in a dialect without lists. */
  list(filter?: { contextId?: string; status?: string }): Promise<string[] | undefined>
  setPush(taskId: string, config: { id: string; url: string; token: string }): Promise<void>
  /** Returns the IDs of the webhooks, with their addresses. */
  listPush(taskId: string): Promise<{ id: string; url: string; token: string | undefined }[]>
  deletePush(taskId: string, id: string): Promise<void>
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever came
type Json = any

const stateOf = (state: string) => state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-')

/** @param spell returns the field of a camelCase name */
const seen = (task: Json, spell: (camel: string) => string): SeenTask => ({
  id: task.id,
  contextId: task[spell('contextId')],
  state: stateOf(task.status.state),
  messageIds: (task.history ?? []).map((message: Json) => message[spell('messageId')]),
  metadata: task.status.message?.metadata ?? {},
})
const camel = (name: string) => name
const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

const statesIn = (text: string) =>
  [...text.matchAll(/"state":"([^"]+)"/g)].map(([, state = '']) => stateOf(state))

function valueIn({ json, status }: RawAnswer): Json {
  if (json?.error === undefined) return json?.jsonrpc === undefined ? json : json.result
  throw Object.assign(new Error(`${status}: ${JSON.stringify(json.error)}`), {
    code: json.error.code,
    status,
  })
}

/** The clients of all dialects at one address. @param url without a final slash */
export function dialectClients(url: string, token: string): DialectClient[] {
  const request = (method: string, path: string, body?: object) =>
    raw(
      { url },
      {
        method,
        path,
        token,
        ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
      },
    )
  const rpc = (path: string) => async (method: string, params: object) =>
    request('POST', path, { jsonrpc: '2.0', id: 1, method, params })
  return [own(rpc('/')), v03(rpc('/a2a/v0.3')), v1Rpc(rpc('/a2a/v1')), v1Rest(request)]
}

type Rpc = (method: string, params: object) => Promise<RawAnswer>
const push = 'tasks/pushNotificationConfig'

function own(rpc: Rpc): DialectClient {
  const call = async (method: string, params: object) => valueIn(await rpc(method, params))
  const config = (json: Json) => ({ id: json.id, url: json.url, token: json.token })
  return {
    name: 'Parley',
    isA2a: false,
    async send(text, { taskId, contextId, messageId = randomUUID(), metadata } = {}) {
      const ids = { messageId, taskId, contextId }
      const message = { kind: 'message', role: 'user', parts: [{ kind: 'text', text }], metadata, ...ids }
      return seen(await call('message/send', { message }), snake)
    },
    get: async (taskId) => seen(await call('tasks/get', { taskId }), snake),
    cancel: async (taskId) => seen(await call('tasks/cancel', { taskId }), snake),
    subscribe: async (taskId) =>
      statesIn((await rpc('tasks/resubscribe', { taskId, afterSequence: 0 })).text),
    list: async ({ contextId } = {}) =>
      (await call('tasks/list', { contextId })).map(({ id }: { id: string }) => id),
    setPush: (id, given) => call(`${push}/set`, { id, long_running: true, push_notification_config: given }),
    listPush: async (id) =>
      (await call(`${push}/list`, { id })).map((one: Json) => config(one.push_notification_config)),
    deletePush: (id, push_notification_config_id) =>
      call(`${push}/delete`, { id, push_notification_config_id }),
  }
}

function v03(rpc: Rpc): DialectClient {
  const call = async (method: string, params: object) => valueIn(await rpc(method, params))
  return {
    name: 'A2A 0.3',
    isA2a: true,
    async send(text, { waits: blocking = true, messageId = randomUUID(), ...given } = {}) {
      const message = { kind: 'message', role: 'user', parts: [{ kind: 'text', text }], messageId, ...given }
      return seen(await call('message/send', { message, configuration: { blocking } }), camel)
    },
    get: async (id) => seen(await call('tasks/get', { id }), camel),
    cancel: async (id) => seen(await call('tasks/cancel', { id }), camel),
    subscribe: async (id) => statesIn((await rpc('tasks/resubscribe', { id })).text),
    list: async () => undefined,
    setPush: (taskId, pushNotificationConfig) => call(`${push}/set`, { taskId, pushNotificationConfig }),
    listPush: async (id) =>
      (await call(`${push}/list`, { id })).map((one: Json) => one.pushNotificationConfig),
    deletePush: (id, pushNotificationConfigId) => call(`${push}/delete`, { id, pushNotificationConfigId }),
  }
}

const message1 = (text: string, { waits = true, messageId = randomUUID(), ...given }: Outgoing = {}) => ({
  message: { messageId, role: 'ROLE_USER', parts: [{ text }], ...given },
  configuration: { returnImmediately: !waits },
})
const idsIn = ({ tasks }: { tasks: { id: string }[] }) => tasks.map(({ id }) => id)

function v1Rpc(rpc: Rpc): DialectClient {
  const call = async (method: string, params: object) => valueIn(await rpc(method, params))
  return {
    name: 'A2A 1.0',
    isA2a: true,
    send: async (text, given) => seen((await call('SendMessage', message1(text, given))).task, camel),
    get: async (id) => seen(await call('GetTask', { id }), camel),
    cancel: async (id) => seen(await call('CancelTask', { id }), camel),
    subscribe: async (id) => statesIn((await rpc('SubscribeToTask', { id })).text),
    list: async (filter = {}) => idsIn(await call('ListTasks', filter)),
    setPush: (taskId, config) => call('CreateTaskPushNotificationConfig', { taskId, ...config }),
    listPush: async (taskId) => (await call('ListTaskPushNotificationConfigs', { taskId })).configs ?? [],
    deletePush: (taskId, id) => call('DeleteTaskPushNotificationConfig', { taskId, id }),
  }
}

function v1Rest(request: (method: string, path: string, body?: object) => Promise<RawAnswer>): DialectClient {
  const call = async (method: string, path: string, body?: object) =>
    valueIn(await request(method, path, body))
  const configs = (id: string) => `/tasks/${id}/pushNotificationConfigs`
  return {
    name: 'REST of A2A 1.0',
    isA2a: true,
    send: async (text, given) =>
      seen((await call('POST', '/message:send', message1(text, given))).task, camel),
    get: async (id) => seen(await call('GET', `/tasks/${id}`), camel),
    cancel: async (id) => seen(await call('POST', `/tasks/${id}:cancel`), camel),
    subscribe: async (id) => statesIn((await request('GET', `/tasks/${id}:subscribe`)).text),
    list: async (filter = {}) => idsIn(await call('GET', `/tasks?${new URLSearchParams(filter).toString()}`)),
    setPush: (taskId, config) => call('POST', configs(taskId), config),
    listPush: async (taskId) => (await call('GET', configs(taskId))).configs ?? [],
    deletePush: (taskId, id) => call('DELETE', `${configs(taskId)}/${id}`),
  }
}
