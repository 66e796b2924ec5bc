import type { AgentPolicy } from '@parley/wire/model/policy'
import { describe, expect, test } from 'vitest'
import {
  agent,
  bearer,
  type Call,
  call,
  type FakeAgent,
  gateway,
  gatewayForEachTest,
  identityProvider,
  post,
  saying,
} from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'
const chess = 'Plays chess, suggests the best move'
const external = { origin: 'registered', admittedBy: 'operator' }

/** The same call in three dialects. */
interface Dialect {
  name: string
  path: string
  /** The name of the call at a fake agent. */
  method: string
  body: (text: string, more?: object) => string
  /** Writes the result of a fake agent. */
  sent: (task: object) => object
  code: (status: number, code: number) => number
}

const envelope = (method: string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })
const v1Params = (text: string, more: object = {}) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
})
const dialects: Dialect[] = [
  {
    name: 'A2A 1.0',
    path: '/a2a/v1',
    method: 'SendMessage',
    body: (text, more) => envelope('SendMessage', v1Params(text, more)),
    sent: (task) => ({ jsonrpc: '2.0', id: 'one', result: { task } }),
    code: (_, code) => code,
  },
  {
    name: 'REST of A2A 1.0',
    path: '/message:send',
    method: '/message:send',
    body: (text, more) => JSON.stringify(v1Params(text, more)),
    sent: (task) => ({ task }),
    code: (status) => status,
  },
  {
    name: 'A2A 0.3',
    path: '/a2a/v0.3',
    method: 'message/send',
    body: (text, more) => envelope('message/send', saying(text, more)),
    sent: (task) => ({ jsonrpc: '2.0', id: 'one', result: { kind: 'task', ...task } }),
    code: (_, code) => code,
  },
]

const taskOf = (state: string, contextId: string = crypto.randomUUID()) => ({
  id: crypto.randomUUID(),
  contextId,
  status: { state, timestamp: new Date().toISOString() },
})

const respond = ({ response }: Call, status: number, body: object) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

const send = ({ path, body }: Dialect, text: string, more?: object, headers?: Record<string, string>) =>
  post(path, body(text, more), headers)

/** Lets the agent answer messages of the dialect with ended tasks. */
function answering(one: FakeAgent, { method, sent, name }: Dialect): FakeAgent {
  one.on[method] = (asked) =>
    respond(asked, 200, sent(taskOf(name === 'A2A 0.3' ? 'completed' : 'TASK_STATE_COMPLETED')))
  return one
}

describe.each(dialects)('$name', (dialect) => {
  test('a message reaches the best agent with the same bytes at the same path', async () => {
    const sky = answering(await agent('sky', weather), dialect)
    await agent('board', chess)
    const body = `  ${dialect.body('weather forecast').replace('{', '{ ')}`
    const answer = await post(`${dialect.path}?x=%20y`, body)
    expect([answer.status, answer.headers.get('x-agent')]).toEqual([200, 'sky'])
    expect(sky.calls).toMatchObject([{ url: `${dialect.path}?x=%20y`, body }])
    expect(sky.calls[0]?.headers['idempotency-key']).toMatch(/^[\da-f-]{36}$/)
  })

  test('the next agent receives a message that a stopping agent refuses', async () => {
    const [sky, rain] = [await agent('sky', weather), await agent('rain', `${weather} with rain`)]
    for (const one of [sky, rain]) answering(one, dialect)
    const metadata = { reason: 'draining' }
    const details = [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'UNAVAILABLE', metadata }]
    const errors: Record<string, object> = {
      'A2A 1.0': { jsonrpc: '2.0', id: 'one', error: { code: -32042, message: 'no', data: details } },
      'REST of A2A 1.0': { error: { code: 503, status: 'UNAVAILABLE', message: 'no', details } },
      'A2A 0.3': { jsonrpc: '2.0', id: 'one', error: { code: -32042, message: 'no', data: metadata } },
    }
    const busy = (await send(dialect, 'weather forecast')).headers.get('x-agent') === 'sky' ? sky : rain
    busy.on[dialect.method] = (asked) => respond(asked, 503, errors[dialect.name] ?? {})
    const other = busy === sky ? 'rain' : 'sky'
    for (const more of [{}, { contextId: 'a new context' }]) {
      const answer = await send(dialect, 'weather forecast', more)
      expect([answer.status, answer.headers.get('x-agent')]).toEqual([200, other])
      expect(answer.headers.get('x-negotiation-id')).not.toBeNull()
    }
    const next = await send(dialect, 'weather forecast', { contextId: 'a new context' })
    expect(next.headers.get('x-agent')).toBe(other)
  })

  test('an external agent of an earlier version is passed over, and is reported if there is no other', async () => {
    const old = await agent('old', weather, external)
    old.on[dialect.method] = (asked) =>
      respond(asked, 404, { jsonrpc: '2.0', id: null, error: { code: -32040, message: 'Not found' } })
    const refused = await send(dialect, 'weather forecast')
    expect(refused.json.error).toMatchObject({
      code: dialect.code(400, -32004),
      message: expect.stringMatching(/^Agent old does not support this version of A2A/),
    })
    const named = await post(`/agents/old${dialect.path}`, dialect.body('weather forecast'))
    expect(named.json.error).toMatchObject({ code: dialect.code(400, -32004) })
    answering(await agent('fallback', weather), dialect)
    expect((await send(dialect, 'weather forecast')).headers.get('x-agent')).toBe('fallback')
  })

  test('messages of one context do not wait for each other while their sends block, and reach the same agent', async () => {
    const both = [await agent('sky', weather), await agent('rain', `${weather} with rain`)]
    const waiting: (() => void)[] = []
    for (const one of both)
      one.on[dialect.method] = async (asked) => {
        await new Promise<void>((resolve) => waiting.push(resolve))
        respond(asked, 200, dialect.sent(taskOf('TASK_STATE_COMPLETED')))
      }
    const contextId = `a context/${crypto.randomUUID()}`
    const sent = [1, 2, 3].map((number) => send(dialect, `weather forecast ${number}`, { contextId }))
    await expect.poll(() => waiting.length, { timeout: 8000 }).toBe(3)
    for (const go of waiting) go()
    const agents = (await Promise.all(sent)).map(({ headers }) => headers.get('x-agent'))
    expect(new Set(agents).size).toBe(1)
  })

  test('a task of a message can be found, and another client does not find it', async () => {
    const sky = await agent('sky', weather)
    const task = taskOf(dialect.name === 'A2A 0.3' ? 'working' : 'TASK_STATE_WORKING')
    sky.on[dialect.method] = (asked) => respond(asked, 200, dialect.sent(task))
    await send(dialect, 'weather forecast')
    sky.on['GetTask'] = () => task
    const get = (client: string) =>
      post('/', envelope('GetTask', { id: task.id }), { authorization: bearer(client) })
    expect((await get('alice')).json.result.id).toBe(task.id)
    sky.on['GetTask'] = () => undefined
    expect((await get('bob')).json.error.code).toBe(-32001)
  })

  test('the outcome of a task counts for its agent once the answer to the message or the stream shows it', async () => {
    const sky = answering(await agent('sky', weather), dialect)
    const completed = () => gateway().registry.find('sky')?.measurements?.completedTasks ?? 0
    await send(dialect, 'weather forecast')
    await expect.poll(completed, { timeout: 8000 }).toBe(1)
    const [streamed, path, body] =
      dialect.name === 'REST of A2A 1.0'
        ? ['/message:stream', '/message:stream', dialect.body('weather forecast')]
        : dialect.name === 'A2A 1.0'
          ? [
              'SendStreamingMessage',
              '/a2a/v1',
              envelope('SendStreamingMessage', v1Params('weather forecast')),
            ]
          : ['message/stream', '/a2a/v0.3', envelope('message/stream', saying('weather forecast'))]
    const states =
      dialect.name === 'A2A 0.3' ? ['working', 'completed'] : ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED']
    const task = taskOf(states[0] ?? '')
    const end = { taskId: task.id, contextId: task.contextId, status: { ...task.status, state: states[1] } }
    const last =
      dialect.name === 'A2A 0.3' ? { kind: 'status-update', final: true, ...end } : { statusUpdate: end }
    const framed = (result: object) =>
      path === '/message:stream' ? result : { jsonrpc: '2.0', id: 'one', result }
    sky.on[streamed] = ({ response }) => {
      const first = dialect.sent(task)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${JSON.stringify(first)}\n\ndata: ${JSON.stringify(framed(last))}\n\n`)
    }
    await post(path, body)
    await expect.poll(completed, { timeout: 8000 }).toBe(2)
  })

  test('a caller that is limited to some skills cannot name another one', async () => {
    const did = 'did:parley:alice:secret:11111111-2222-4333-8444-555555555555'
    const skills = ['public', 'internal'].map((id) => ({
      id,
      name: id,
      description: `Reads ${id} ledgers`,
      tags: [],
      input_modes: ['text/plain'],
      output_modes: ['text/plain'],
    }))
    const secret = answering(await agent('secret', 'Audits ledgers', { did, keys: ['key'], skills }), dialect)
    const policy: AgentPolicy = {
      rules: [
        { effect: 'allow', callers: ['authenticated'] },
        { effect: 'deny', callers: ['client:bob'], skills: ['internal'] },
      ],
      default: 'deny',
    }
    const stored = {
      ...policy,
      changedAt: '2026-11-22T10:00:00.000000+00:00',
      changedBy: 'operator',
    } as const
    await gateway().registry.setPolicy('11111111-2222-4333-8444-555555555555', stored, () => {})
    const bob = { authorization: bearer('bob') }
    for (const path of [`/agents/secret${dialect.path}`, dialect.path]) {
      const internal = dialect.body('Reads ledgers', { metadata: { skill_id: 'internal' } })
      expect((await post(path, internal, bob)).text).not.toContain('"result"')
    }
    const named = await post(
      `/agents/secret${dialect.path}`,
      dialect.body('Reads ledgers', { metadata: { skillId: 'internal' } }),
      bob,
    )
    expect([named.status, named.json.error.code]).toEqual([403, dialect.code(403, -32013)])
    expect(secret.calls).toEqual([])
    const allowed = dialect.body('Reads ledgers', { metadata: { skill_id: 'public' } })
    expect((await post(`/agents/secret${dialect.path}`, allowed, bob)).status).toBe(200)
    const card = await fetch(`${gateway().addresses.public}/agents/secret/extendedAgentCard`, {
      headers: bob,
    })
    expect([card.status, await card.text()]).toEqual([400, expect.any(String)])
    expect(secret.calls).toHaveLength(1)
  })

  test('an agent that acts for a client may send messages at a named agent, but not read the extended card', async () => {
    answering(await agent('sky', weather), dialect)
    const aud = gateway().addresses.public
    const token = identityProvider().issue('alice', {
      scope: 'agent:read agent:write',
      aud,
      act: { sub: 'did:parley:ann:agent:one' },
    })
    const authorization = { authorization: `Bearer ${token}` }
    const answer = await post(`/agents/sky${dialect.path}`, dialect.body('weather'), authorization)
    expect([answer.status, answer.text]).toEqual([200, expect.any(String)])
    const card = await fetch(`${aud}/agents/sky/extendedAgentCard`, { headers: authorization })
    expect([card.status, JSON.stringify(await card.json())]).toEqual([
      403,
      expect.stringContaining('delegated_token'),
    ])
    const read = await fetch(`${aud}/agents/sky/tasks/${crypto.randomUUID()}`, { headers: authorization })
    expect(read.status).toBe(200)
  })
})

/** Lets the agents answer ListTasks with pages of their tasks, the newest status first. */
function listing(one: FakeAgent, seconds: readonly number[]): string[] {
  const tasks = seconds.map((second) => ({
    id: crypto.randomUUID(),
    contextId: 'ctx',
    status: { state: 'TASK_STATE_COMPLETED', timestamp: `2026-01-01T00:00:${second}.000Z` },
  }))
  const page = (params: Record<string, unknown>) => {
    const from = Number(params['pageToken'] ?? 0)
    const size = Number(params['pageSize'] ?? 50)
    const next = from + size < tasks.length ? String(from + size) : ''
    return {
      tasks: tasks.slice(from, from + size),
      nextPageToken: next,
      pageSize: size,
      totalSize: tasks.length,
    }
  }
  one.on['ListTasks'] = ({ params }) => page(params)
  one.get = (url) => page(Object.fromEntries(new URL(url, 'http://agent').searchParams))
  return tasks.map(({ id }) => id)
}

test.each(['JSON-RPC', 'REST'])(
  'ListTasks over %s merges the agents by the time of the status, with the exact total on every page',
  async (kind) => {
    const ids = [
      ...listing(await agent('sky', weather), [50, 40, 30, 20, 10]),
      ...listing(await agent('board', chess), [55]),
      ...listing(await agent('french', 'Translates into French'), [45, 25]),
    ]
    const read: string[] = []
    let pageToken = ''
    for (let pages = 1; ; pages += 1) {
      const query = new URLSearchParams({ pageSize: '2', ...(pageToken !== '' && { pageToken }) })
      const page =
        kind === 'REST'
          ? await fetch(`${gateway().addresses.public}/tasks?${query.toString()}`, {
              headers: { authorization: bearer('alice') },
            }).then((answer) => answer.json())
          : (await call('ListTasks', Object.fromEntries(query))).json.result
      expect(page).toMatchObject({ pageSize: 2, totalSize: 8 })
      read.push(...page.tasks.map(({ id }: { id: string }) => id))
      pageToken = page.nextPageToken
      if (pageToken === '') break
      expect(pages).toBeLessThan(10)
    }
    const [a, b, c, d, e, f, g, h] = ids
    expect(read).toEqual([f, a, g, b, c, h, d, e])
  },
)

test('tenant names an agent at the address of the gateway, and other tenants are refused', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  for (const one of [sky, board])
    for (const dialect of dialects.slice(0, 2)) {
      answering(one, dialect)
      answering(one, { ...dialect, method: `/a2a/v1/board/message:send` })
    }
  const inParams = await call('SendMessage', { ...v1Params('weather forecast'), tenant: 'board' })
  const inPath = await post('/a2a/v1/board/message:send', JSON.stringify(v1Params('weather forecast')))
  expect([inParams.status, inPath.status]).toEqual([200, 200])
  expect([sky.calls.length, board.calls.length]).toEqual([0, 2])
  expect(board.calls[0]?.headers['x-forwarded-prefix']).toBe('/agents/board')
  for (const tenant of ['nobody', 'a/b', '..', '\u0000', 'x'.repeat(300), 7, {}]) {
    const refused = await call('SendMessage', { ...v1Params('weather forecast'), tenant })
    expect(refused.json.error.code).toBe(typeof tenant === 'string' && tenant.length < 257 ? -32040 : -32602)
  }
  const unknown = await post('/a2a/v1/nobody/message:send', JSON.stringify(v1Params('weather')))
  expect([unknown.status, unknown.json.error.status]).toEqual([404, 'NOT_FOUND'])
  expect([sky.calls.length, board.calls.length]).toEqual([0, 2])
})

test.each([
  ['an unknown version', '/a2a/v1', envelope('GetTask', { id: 'x' }), { 'a2a-version': '7' }, 200, -32009],
  ['a method of another version', '/a2a/v1', envelope('message/send', {}), {}, 200, -32601],
  ['a method of A2A 1.0 in the path', '/SendMessage', envelope('SendMessage', {}), {}, 404, -32040],
  ['a task ID with a slash', '/a2a/v1', envelope('GetTask', { id: '../x' }), {}, 200, -32001],
  [
    'a task ID with a control character',
    '/a2a/v0.3',
    envelope('tasks/get', { id: '\u0000' }),
    {},
    200,
    -32001,
  ],
  ['a batch', '/a2a/v1', '[]', {}, 200, -32600],
  ['no JSON', '/a2a/v1', '{', {}, 200, -32700],
  ['another media type', '/a2a/v1', '{}', { 'content-type': 'text/plain' }, 415, -32005],
  ['an encoded slash in the path', '/agents/sky/a2a%2fv1', '{}', {}, 400, -32600],
])('%s is refused without reaching an agent', async (_, path, body, headers, status, code) => {
  const sky = await agent('sky', weather)
  const answer = await post(path, body, headers)
  expect([answer.status, answer.json.error.code]).toEqual([status, code])
  expect(sky.sent('SendMessage')).toEqual([])
})

test.each([
  ['GET', '/message:send', 405],
  ['PUT', '/a2a/v1/message:send', 405],
  ['DELETE', '/tasks/x:cancel', 405],
  ['GET', '/a2a/v1/tasks/x%2fy', 404],
  ['GET', '/a2a/v1/nothing/here/at/all', 404],
  ['GET', '/a2a/v1/tasks/%00', 404],
])('%s %s is refused with an error in the form of REST', async (method, path, status) => {
  const answer = await fetch(`${gateway().addresses.public}${path}`, {
    method,
    headers: { authorization: bearer('alice'), 'a2a-version': '1.0' },
  })
  expect(answer.status).toBe(status)
  expect(await answer.json()).toMatchObject({ error: { code: status, status: expect.any(String) } })
})

test('a body that is too large is refused in the form of the dialect', async () => {
  const large = 'x'.repeat(11 * 1024 * 1024)
  const rest = await post('/message:send', large)
  expect([rest.status, rest.json.error]).toEqual([413, expect.objectContaining({ code: 413 })])
  expect((await post('/a2a/v1', large)).status).toBe(413)
  await agent('sky', weather)
  const named = await post('/agents/sky/message:send', large)
  expect([named.status, named.json.error]).toEqual([413, expect.objectContaining({ code: 413 })])
})

test('metrics name the method of a call with and without a JSON-RPC envelope', async () => {
  await agent('sky', weather)
  await call('GetTask', { id: crypto.randomUUID() })
  const headers = { authorization: bearer('alice') }
  await fetch(`${gateway().addresses.public}/tasks/${crypto.randomUUID()}`, { headers })
  await fetch(`${gateway().addresses.public}/agents/sky/tasks/${crypto.randomUUID()}`, { headers })
  const metrics = await (await fetch(`${gateway().addresses.public}/metrics`)).text()
  const labelled = metrics.match(/^http_requests_total.*rpc_method="GetTask".*$/gm) ?? []
  const endpoints = labelled.map((line) => /endpoint="([^"]*)"/.exec(line)?.[1])
  expect(new Set(endpoints)).toEqual(new Set(['/', '/agents/:slug/*', '/tasks/:id']))
  expect(endpoints).toHaveLength(3)
})
