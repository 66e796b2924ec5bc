import { randomUUID } from 'node:crypto'
import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

const lines: string[] = []
let agent: TestAgent
let token: string
let other: string
beforeAll(async () => {
  agent = await testAgent(
    { handle: ({ text, ask, history }) => (text === 'ask' && history.length === 1 ? ask('what?') : text) },
    {
      env: { LOG_LEVEL: 'trace', WEBHOOK_ALLOWED_HOSTS: 'none' },
      logTo: { write: (line: string) => void lines.push(line) },
    },
  )
  token = agent.caller('alice').token
  other = agent.caller('bob').token
})
afterAll(() => agent[Symbol.asyncDispose]())

const json = { 'content-type': 'application/json' }

/** One way to call the agent. The texts are JSON, so that they may hold what no object can. */
interface Binding {
  /** The fields of a text message, and its text as a part. */
  message: Record<string, unknown>
  send: (params: string, given?: Given) => Promise<Answer>
  setPush: (taskId: string, config: Config, given?: Given) => Promise<Answer>
  getPush: (taskId: string, id: string, given?: Given) => Promise<Answer>
  listPush: (taskId: string, given?: Given) => Promise<Answer>
  deletePush: (taskId: string, id: string, given?: Given) => Promise<Answer>
  /** The codes of errors: that of JSON-RPC, or the HTTP status. */
  code: (rpc: number, status: number) => number
  isRest: boolean
}

interface Config {
  id?: string
  url: string
  token?: string
  scheme?: string
  credentials?: string
}

interface Given {
  token?: string | undefined
}

type Answer = Awaited<ReturnType<typeof raw>>

const call = (
  path: string,
  { method = 'POST', body, ...given }: Given & { method?: string; body?: string },
) =>
  raw(agent, {
    method,
    path,
    token: 'token' in given ? given.token : token,
    headers: body === undefined ? {} : json,
    ...(body !== undefined && { body }),
  })
const rpc = (path: string, method: string, params: string | object, given: Given = {}) =>
  call(path, {
    ...given,
    body: `{"jsonrpc":"2.0","id":7,"method":"${method}","params":${typeof params === 'string' ? params : JSON.stringify(params)}}`,
  })

const message1 = { role: 'ROLE_USER', parts: [{ text: 'hello' }] }
const message03 = { role: 'user', kind: 'message', parts: [{ kind: 'text', text: 'hello' }] }
const config1 = ({ scheme, credentials, ...config }: Config) => ({
  ...config,
  ...(scheme !== undefined && { authentication: { scheme, credentials } }),
})
const config03 = ({ scheme, credentials, ...config }: Config) => ({
  ...config,
  ...(scheme !== undefined && { authentication: { schemes: [scheme], credentials } }),
})
const hooks = (taskId: string, id = '') =>
  `/tasks/${taskId}/pushNotificationConfigs${id === '' ? '' : `/${encodeURIComponent(id)}`}`

const rpc1 = (path: string): Binding => ({
  message: message1,
  send: (params, given) => rpc(path, 'SendMessage', params, given),
  setPush: (taskId, config, given) =>
    rpc(path, 'CreateTaskPushNotificationConfig', { taskId, ...config1(config) }, given),
  getPush: (taskId, id, given) => rpc(path, 'GetTaskPushNotificationConfig', { taskId, id }, given),
  listPush: (taskId, given) => rpc(path, 'ListTaskPushNotificationConfigs', { taskId }, given),
  deletePush: (taskId, id, given) => rpc(path, 'DeleteTaskPushNotificationConfig', { taskId, id }, given),
  code: (code) => code,
  isRest: false,
})
const push03 = 'tasks/pushNotificationConfig'

const bindings: [string, Binding][] = [
  ['JSON-RPC of 1.0', rpc1('/a2a/v1')],
  ['JSON-RPC of 1.0 at the root', rpc1('/')],
  [
    'REST of 1.0',
    {
      message: message1,
      send: (body, given) => call('/message:send', { ...given, body }),
      setPush: (taskId, config, given) =>
        call(hooks(taskId), { ...given, body: JSON.stringify(config1(config)) }),
      getPush: (taskId, id, given) => call(hooks(taskId, id), { ...given, method: 'GET' }),
      listPush: (taskId, given) => call(hooks(taskId), { ...given, method: 'GET' }),
      deletePush: (taskId, id, given) => call(hooks(taskId, id), { ...given, method: 'DELETE' }),
      code: (_code, status) => status,
      isRest: true,
    },
  ],
  [
    'JSON-RPC of 0.3',
    {
      message: message03,
      send: (params, given) => rpc('/a2a/v0.3', 'message/send', params, given),
      setPush: (taskId, config, given) =>
        rpc('/a2a/v0.3', `${push03}/set`, { taskId, pushNotificationConfig: config03(config) }, given),
      getPush: (id, pushNotificationConfigId, given) =>
        rpc('/a2a/v0.3', `${push03}/get`, { id, pushNotificationConfigId }, given),
      listPush: (id, given) => rpc('/a2a/v0.3', `${push03}/list`, { id }, given),
      deletePush: (id, pushNotificationConfigId, given) =>
        rpc('/a2a/v0.3', `${push03}/delete`, { id, pushNotificationConfigId }, given),
      code: (code) => code,
      isRest: false,
    },
  ],
]

const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
/** Changes to the JSON of a message, each with the JSON-RPC code of its error. */
const changes: [string, (text: string) => string, number][] = [
  ['NaN', (text) => text.replace('"role"', '"metadata":{"a":NaN},"role"'), -32700],
  ['Infinity', (text) => text.replace('"role"', '"metadata":{"a":-Infinity},"role"'), -32700],
  ['an end in the middle', (text) => text.slice(0, -3), -32700],
  ['101 levels', (text) => text.replace('"role"', `"metadata":{"a":${nested(100)}},"role"`), -32600],
  ['10,000 levels', (text) => text.replace('"role"', `"metadata":{"a":${nested(10_000)}},"role"`), -32600],
  ['__proto__', (text) => text.replace('"role"', '"__proto__":{"taskId":"x"},"role"'), -32600],
  [
    'constructor.prototype',
    (text) => text.replace('"role"', '"metadata":{"constructor":{"prototype":{}}},"role"'),
    -32600,
  ],
  ['a second role of a later version', (text) => text.replace('"role"', '"role":"ROLE_X","role"'), 0],
  ['a last role of a later version', (text) => text.replace('"parts"', '"role":"ROLE_X","parts"'), -32602],
  ['a number as ID', (text) => text.replace(/"messageId":"[^"]*"/, '"messageId":5'), -32602],
  ['an ID of 10,000 characters', (text) => text.replace('"messageId":"', `$&${'x'.repeat(10_000)}`), -32602],
  ['an empty list of parts', (text) => text.replace(/"parts":\[.*\]/, '"parts":[]'), -32602],
  ['a null part', (text) => text.replace(/"parts":\[.*\]/, '"parts":[null]'), -32602],
  ['a number as text', (text) => text.replace('"hello"', '5'), -32602],
  ['a list as metadata', (text) => text.replace('"role"', '"metadata":[],"role"'), -32602],
  ['a task ID with slashes', (text) => text.replace('"role"', '"taskId":"../../x","role"'), -32001],
  ['a lone surrogate as task ID', (text) => text.replace('"role"', '"taskId":"\\ud800","role"'), -32001],
  ['a negative history', (text) => text.replace(/}$/, ',"configuration":{"historyLength":-1}}'), -32602],
  ['a history of -0', (text) => text.replace(/}$/, ',"configuration":{"historyLength":-0}}'), 0],
  [
    'half a message of history',
    (text) => text.replace(/}$/, ',"configuration":{"historyLength":0.5}}'),
    -32602,
  ],
  ['an infinite history', (text) => text.replace(/}$/, ',"configuration":{"historyLength":1e400}}'), -32602],
  ['a list as configuration', (text) => text.replace(/}$/, ',"configuration":[]}'), -32602],
  ['unknown fields', (text) => text.replace('"role"', '"later":{"x":1},"role"'), 0],
]
const statuses = new Map([
  [0, 200],
  [-32001, 404],
])

const secretOf = () => `secret-${randomUUID()}`
/** Addresses that are not public, in several spellings. */
const privateUrls = [
  'http://127.0.0.1/',
  'http://2130706433/',
  'http://0177.0.0.1/',
  'http://localhost/',
  'http://[::1]/',
  'http://[::ffff:10.0.0.1]/',
  'http://0.0.0.0/',
  'http://169.254.169.254/latest/meta-data/',
  'http://192.168.0.1/',
  'file:///etc/passwd',
]

describe.each(bindings)('%s', (_, binding) => {
  const { code, isRest } = binding
  const messageText = (fields: object = {}) =>
    JSON.stringify({ message: { messageId: randomUUID(), ...binding.message, ...fields } })
  const outcome = ({ status, json: answer }: Answer) => [
    status,
    answer.error?.code ?? 0,
    isRest || answer.error === undefined ? undefined : answer.jsonrpc,
  ]
  const outcomeOf = (rpcCode: number, { isRead = true } = {}) => {
    const status = statuses.get(rpcCode) ?? 400
    if (rpcCode === 0) return [200, 0, undefined]
    // At the root, a body that cannot be read does not name a dialect, so that it receives Parley's own status.
    const inOwnForm = !isRead && binding === bindings[1]?.[1]
    return [isRest || inOwnForm ? status : 200, code(rpcCode, status), isRest ? undefined : '2.0']
  }
  const newTask = async (): Promise<string> => {
    const { json: answer } = await rpc('/a2a/v1', 'SendMessage', {
      message: { ...message1, messageId: randomUUID(), parts: [{ text: 'ask' }] },
    })
    return answer.result.task.id
  }

  test.each(changes)('a message with %s', async (_name, change, rpcCode) => {
    const answer = await binding.send(change(messageText()))
    expect(outcome(answer)).toEqual(outcomeOf(rpcCode, { isRead: ![-32700, -32600].includes(rpcCode) }))
  })

  test.each(['[]', '"text"', '7'])('params %s are refused', async (params) => {
    expect(outcome(await binding.send(params))).toEqual(outcomeOf(-32602))
  })

  test('a call without a token or the scope is refused in the form of its dialect, also without A2A-Version', async () => {
    const { status, json: answer, headers } = await binding.send(messageText(), { token: undefined })
    expect([status, answer.error.code, answer.id]).toEqual([401, code(-32000, 401), isRest ? undefined : 7])
    expect(headers.get('www-authenticate')).toMatch(/^Bearer/)
    const reader = agent.caller('alice', 'agent:read').token
    const refused = await binding.send(messageText(), { token: reader })
    expect([refused.status, refused.json.error.code]).toEqual([403, code(-32013, 403)])
  })

  test.each([
    '\ud800\udbff',
    '\u0000\u001f\u007f',
    '../%2f?#&\\"',
    'é😀\u2028',
    'x'.repeat(256),
    'constructor',
  ])('the IDs %j are returned unchanged by sends and reads', async (id) => {
    const { json: answer } = await binding.send(messageText({ messageId: id, contextId: id }))
    const sent = answer.result?.task ?? answer.task ?? answer.result
    const { json: again } = await rpc('/a2a/v1', 'GetTask', { id: sent.id })
    for (const task of [sent, again.result]) {
      expect(task.contextId).toBe(id)
      expect(task.history[0].messageId).toBe(id)
    }
    const listed = await rpc('/a2a/v1', 'ListTasks', { contextId: id })
    expect(listed.json.result.tasks).toContainEqual(expect.objectContaining({ id: sent.id, contextId: id }))
    const theirs = await rpc('/a2a/v1', 'ListTasks', { contextId: id }, { token: other })
    expect(theirs.json.result.tasks).toEqual([])
  })

  test('a webhook is shown to its owner only, and its secrets are in no log line, metric or error', async () => {
    lines.length = 0
    const taskId = await newTask()
    const [hookToken, credentials, inUrl] = [secretOf(), secretOf(), secretOf()]
    const config = {
      id: 'hook',
      url: `http://192.0.2.1/${inUrl}`,
      token: hookToken,
      scheme: 'Bearer',
      credentials,
    }
    const open = { ...config, url: `https://example.com/${inUrl}` }
    const created = await binding.setPush(taskId, open)
    expect(created.text).toContain(credentials)
    const answers = [
      await binding.setPush(taskId, config),
      await binding.setPush(taskId, { ...open, credentials: `${credentials}\r\nX-Admin: 1` }),
      await binding.setPush(taskId, { ...open, scheme: `Bearer ${credentials}\n` }),
      await binding.setPush(taskId, { ...open, token: `${hookToken}\n` }),
      await binding.setPush(taskId, open, { token: other }),
      await binding.getPush(taskId, 'hook', { token: other }),
      await binding.listPush(taskId, { token: other }),
      await binding.deletePush(taskId, 'hook', { token: other }),
      await rpc('/a2a/v1', 'GetTask', { id: taskId }),
    ]
    expect(answers.slice(0, -1).map(({ json: { error } }) => error.code)).toEqual([
      ...Array.from({ length: 4 }, () => code(-32602, 400)),
      ...Array.from({ length: 4 }, () => code(-32001, 404)),
    ])
    const shown = [...answers.map(({ text }) => text), ...lines]
    shown.push(await (await fetch(`${agent.url}/metrics`)).text())
    const secrets = [hookToken, credentials, inUrl]
    expect(shown.filter((text) => secrets.some((secret) => text.includes(secret)))).toEqual([])
    expect((await binding.getPush(taskId, 'hook')).text).toContain(credentials)
    expect((await binding.deletePush(taskId, 'hook')).json).not.toHaveProperty('error')
  })

  test.each(privateUrls)('a webhook at %s is refused, alone and in a message', async (url) => {
    const taskId = await newTask()
    const alone = await binding.setPush(taskId, { url })
    expect(outcome(alone)).toEqual(outcomeOf(-32602))
    expect(alone.text).toMatch(/"(field|path)":"(pushNotificationConfig\.)?url"/)
    const name = binding.message === message1 ? 'taskPushNotificationConfig' : 'pushNotificationConfig'
    const configuration = JSON.stringify({ [name]: { url } })
    const inMessage = await binding.send(messageText().replace(/}$/, `,"configuration":${configuration}}`))
    expect(outcome(inMessage)).toEqual(outcomeOf(-32602))
  })

  test('a webhook may name a scheme without credentials, and credentials need a scheme', async () => {
    const taskId = await newTask()
    const url = 'https://example.com/'
    const { json: answer } = await binding.setPush(taskId, { url, token: 't', scheme: 'Bearer' })
    const { authentication } = answer.result?.pushNotificationConfig ?? answer.result ?? answer
    expect([authentication.scheme ?? authentication.schemes[0], authentication.credentials]).toEqual([
      'Bearer',
      undefined,
    ])
    const refused = await binding.setPush(taskId, { url, scheme: '', credentials: 'c' })
    expect(outcome(refused)).toEqual(outcomeOf(-32602))
  })
})

const rest = (query: string, given: Given = {}) => call(`/a2a/v1/tasks?${query}`, { ...given, method: 'GET' })

test.each([
  ['forged', () => 'AAAA'],
  ['with a control character', () => 'a\u0000b'],
  ['changed', (cursor: string) => `${cursor.slice(1)}${cursor.slice(0, 1)}`],
  ['too long', (cursor: string) => cursor + 'x'.repeat(5000)],
])('a page token that is %s is refused, and the field has its name of 1.0', async (_name, change) => {
  for (let sent = 0; sent < 2; sent += 1)
    await rpc('/a2a/v1', 'SendMessage', { message: { ...message1, messageId: randomUUID() } })
  const { json: page } = await rpc('/a2a/v1', 'ListTasks', { pageSize: 1 })
  const cursor: string = page.result.nextPageToken
  const refused = { fieldViolations: [{ field: 'pageToken', description: expect.any(String) }] }
  const answer = await rpc('/a2a/v1', 'ListTasks', { pageToken: change(cursor) })
  expect(answer.json.error).toMatchObject({ code: -32602, data: [refused] })
  const byRest = await rest(`pageToken=${encodeURIComponent(change(cursor))}`)
  expect(byRest.json.error).toMatchObject({ status: 'INVALID_ARGUMENT', details: [refused] })
  const theirs = await rest(`pageToken=${encodeURIComponent(cursor)}`, { token: other })
  expect(theirs.json.error).toMatchObject({ code: 400, details: [refused] })
})

test.each([
  ['%zz', 'The path has an invalid escape'],
  ['x'.repeat(300), 'A segment of the path is longer than 256 characters'],
])('GET /tasks/%s is refused in the form of REST, with the reason', async (id, reason) => {
  const { status, json: answer } = await raw(agent, {
    method: 'GET',
    path: `/tasks/${id}`,
    token,
    headers: { 'a2a-version': '1.0' },
  })
  expect([status, answer.error.message]).toEqual([400, reason])
  expect(answer.error.status).toBe('INVALID_ARGUMENT')
})

test('the task of a 0.3 webhook is `taskId`, as at a gateway, even if there is another `id`', async () => {
  const { json: answer } = await rpc('/a2a/v0.3', 'message/send', {
    message: { ...message03, messageId: 'm' },
  })
  const params = {
    taskId: answer.result.id,
    id: 'hook',
    pushNotificationConfig: { url: 'https://example.com/' },
  }
  const set = await rpc('/a2a/v0.3', `${push03}/set`, params)
  expect(set.json.result.taskId).toBe(answer.result.id)
})
