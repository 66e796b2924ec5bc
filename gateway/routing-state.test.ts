import net from 'node:net'
import { decodeJwt } from 'jose'
import { expect, test } from 'vitest'
import { agent, bearer, call, fail, gateway, gatewayForEachTest, post, saying } from './testing.ts'

gatewayForEachTest({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' })

const weather = 'Weather forecast for any city'
const chess = 'Plays chess, suggests the best move'

test('a task created directly at the agent is found with one query, and the task of another owner looks like a missing one', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  const task = board.take(saying('hello')) as { id: string }
  for (let time = 0; time < 3; time += 1)
    expect((await call('tasks/get', { task_id: task.id })).headers.get('x-agent')).toBe('board')
  expect(sky.calls.length).toBeLessThanOrEqual(1)
  const id = crypto.randomUUID()
  for (let time = 0; time < 3; time += 1) {
    const missing = await call('tasks/get', { task_id: id })
    expect(missing).toMatchObject({
      status: 404,
      json: { id: 'one', error: { code: -32001, data: { taskId: id } } },
    })
  }
  expect(sky.calls.filter(({ params }) => params['task_id'] === id)).toHaveLength(1)
})

/** The client in the statement that an agent receives in place of the client's token. */
function clientIn(authorization = ''): unknown {
  return decodeJwt(authorization.replace('Bearer ', ''))['client_id']
}

test('tasks/list merges the tasks of all agents page by page, newest first, and lists each task once', async () => {
  const agents = [await agent('sky', weather), await agent('board', chess)]
  for (const [at, one] of agents.entries()) {
    one.on['message/send'] = ({ params }) =>
      one.take(params, `2026-01-01T00:00:0${one.sent().length * 2 + at}.000000+00:00`)
    one.on['tasks/list'] = ({ params, response, headers }) => {
      const all = clientIn(headers.authorization) === 'alice' ? [...one.tasks.values()].reverse() : []
      const from = Number(params['cursor'] ?? 0)
      const to = from + Number(params['limit'] ?? 1000)
      if (to < all.length) response.setHeader('x-next-cursor', String(to))
      return all.slice(from, to)
    }
  }
  for (let time = 0; time < 3; time += 1) {
    await call('message/send', saying('weather forecast'))
    await call('message/send', saying('best chess move'))
  }
  const whole = await call('tasks/list', {})
  const ids = (whole.json.result as { id: string; status: { timestamp: string } }[]).map(({ id }) => id)
  const times = (whole.json.result as { status: { timestamp: string } }[]).map(
    ({ status }) => status.timestamp,
  )
  expect(times).toEqual(times.toSorted().reverse())
  expect(ids).toHaveLength(6)
  for (const limit of [1, 2, 4, 5]) {
    const read: string[] = []
    let cursor: string | null = null
    do {
      const page = await call('tasks/list', { limit, ...(cursor === null ? {} : { cursor }) })
      expect(page.json.result.length).toBeLessThanOrEqual(limit)
      read.push(...(page.json.result as { id: string }[]).map(({ id }) => id))
      cursor = page.headers.get('x-next-cursor')
    } while (cursor !== null && read.length < 20)
    expect(read).toEqual(ids)
  }
  const { headers } = await call('tasks/list', { limit: 1 })
  const cursor = headers.get('x-next-cursor')
  for (const [params, client] of [
    [{ cursor }, 'bob'],
    [{ cursor: 'abc' }, 'alice'],
    [{ limit: 0 }, 'alice'],
  ] as const)
    expect((await call('tasks/list', params, { authorization: bearer(client) })).json.error.code).toBe(-32602)
  expect((await call('contexts/list', { cursor })).json.error.code).toBe(-32602)
  expect((await call('tasks/list', {}, { authorization: bearer('bob') })).json.result).toEqual([])
})

test('an agent that does not respond is reported in X-Parley-Incomplete while the others are listed', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  await call('message/send', saying('weather forecast'))
  await call('message/send', saying('best chess move'))
  sky.on['tasks/list'] = () => new Promise(() => {})
  const listed = await call('tasks/list', {})
  expect(listed.headers.get('x-parley-incomplete')).toBe('sky')
  expect(listed.json.result.map(({ id }: { id: string }) => id)).toEqual([...board.tasks.keys()])
})

test('contexts/clear goes to the agent of the context and removes the routes of the context', async () => {
  const [sky, board] = [await agent('sky', weather), await agent('board', chess)]
  const contextId = crypto.randomUUID()
  await call('message/send', saying('weather forecast', { contextId }))
  const cleared = await call('contexts/clear', { context_id: contextId })
  expect([cleared.status, cleared.headers.get('x-agent')]).toEqual([200, 'sky'])
  await call('message/send', saying('best chess move', { contextId }))
  expect(board.sent()).toHaveLength(1)
  expect(sky.sent('contexts/clear')).toHaveLength(1)
})

test.each<[string, string, Record<string, string>, number, number, unknown]>([
  ['no token', '{}', { authorization: '' }, 401, -32009, null],
  ['a bad token', '{"id":"x"}', { authorization: 'Bearer nobody' }, 401, -32010, 'x'],
  ['no JSON', '{', {}, 400, -32700, null],
  ['nothing', '', {}, 400, -32700, null],
  ['a list', '[]', {}, 400, -32600, null],
  ['no id', '{"jsonrpc":"2.0","method":"tasks/get"}', {}, 400, -32600, null],
  ['an unknown method', '{"jsonrpc":"2.0","id":3,"method":"tasks/steal"}', {}, 404, -32601, 3],
  ['params that are a list', '{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":[]}', {}, 400, -32602, 3],
  [
    'a task id that is none',
    '{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"id":"x"}}',
    {},
    400,
    -32602,
    3,
  ],
  [
    'a message without parts',
    '{"jsonrpc":"2.0","id":3,"method":"message/send","params":{"message":{}}}',
    {},
    400,
    -32602,
    3,
  ],
  ['another content type', '{}', { 'content-type': 'text/plain' }, 415, -32600, null],
  [
    'the extended card',
    '{"jsonrpc":"2.0","id":3,"method":"agent/getAuthenticatedExtendedCard"}',
    {},
    400,
    -32007,
    3,
  ],
])('POST / with %s is rejected', async (_what, body, headers, status, code, id) => {
  const refused = await post('/', body, headers)
  expect([refused.status, refused.json.error.code, refused.json.id]).toEqual([status, code, id])
})

test('a call with an insufficient scope or a path that names another method is rejected', async () => {
  const refused = await call('message/send', saying('hello'), {
    authorization: bearer('alice', 'agent:read'),
  })
  expect([refused.status, refused.json.error.code]).toEqual([403, -32013])
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: {} })
  expect((await post('/tasks/list', body)).json.error.code).toBe(-32600)
})

test('POST /agent/negotiation returns the best agent’s response, the candidates in order and the excluded agents with their rules', async () => {
  await agent('sky', weather)
  await agent('board', chess)
  await agent('far', weather, { admitted: false })
  const gone = await agent('gone', weather)
  gateway().registry.setStatus(gateway().registry.find(gone.slug)?.id ?? '', 'unreachable')
  const weights = { skill_match: 1 }
  const answer = await post(
    '/agent/negotiation',
    JSON.stringify({ task_summary: 'weather forecast', weights }),
    {},
  )
  expect(answer.status).toBe(200)
  expect(answer.json).toMatchObject({
    can_handle: true,
    agent: { slug: 'sky', name: 'sky', url: `${gateway().addresses.public}/agents/sky` },
    candidates: [{ agent: { slug: 'sky' } }, { agent: { slug: 'board' }, can_handle: false }],
    excluded: [
      { agent: 'far', rule: 'not admitted' },
      { agent: 'gone', rule: 'unreachable' },
    ],
  })
  const one = await post('/agent/negotiation', JSON.stringify({ task_summary: 'weather', weights, limit: 1 }))
  expect(one.json.candidates).toHaveLength(1)
  const id = one.json.negotiation_id as string
  const record = await fetch(`${gateway().addresses.public}/negotiations/${id}`, {
    headers: { authorization: bearer('alice') },
  })
  expect(await record.json()).toMatchObject({ method: 'agent/negotiation', chosen: 'sky' })
  const none = await post('/agent/negotiation', JSON.stringify({ task_summary: 'x', weights, limit: 0 }))
  expect(none.json.error.code).toBe(-32602)
})

test('the id alone grants access to the record of a request without a token', async () => {
  const body = JSON.stringify({ task_summary: 'weather', weights: {} })
  const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
  const response = await fetch(`${gateway().addresses.public}/agent/negotiation`, init)
  const { negotiation_id: id, can_handle } = (await response.json()) as Record<string, unknown>
  expect(can_handle).toBe(false)
  expect((await fetch(`${gateway().addresses.public}/negotiations/${id as string}`)).status).toBe(200)
  expect((await fetch(`${gateway().addresses.public}/negotiations/${'0'.repeat(32)}`)).status).toBe(404)
  expect((await fetch(`${gateway().addresses.public}/negotiations/x`)).status).toBe(404)
})

test('an agent that fails repeatedly is ejected, as its entry shows, and gets no messages', async () => {
  const sky = await agent('sky', weather)
  const second = await agent('sky-two', 'Weather forecast')
  sky.on['message/send'] = ({ response, id }) => fail(response, id, 500, -32603, {})
  for (let time = 0; time < 5; time += 1) await call('message/send', saying('weather forecast for any city'))
  await expect.poll(() => gateway().registry.find('sky')?.quarantine?.until).toBeGreaterThan(Date.now())
  const entry = await (await fetch(`${gateway().addresses.public}/registry/agents/sky`)).json()
  expect(entry).toMatchObject({ quarantined: true, quarantine: { by: 'gateway', until: expect.any(String) } })
  const taken = await call('message/send', saying('weather forecast for any city'))
  expect([taken.headers.get('x-agent'), second.sent().length]).toEqual(['sky-two', 1])
})

test('one unanswered message counts as one failure, however often it is repeated', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/send'] = ({ response, params }) =>
    sky.sent().length < 7 ? void response.destroy() : sky.take(params)
  const taken = await call('message/send', saying('weather forecast'))
  expect([taken.status, sky.sent().length]).toEqual([200, 7])
  expect(gateway().registry.find('sky')?.quarantine).toBeUndefined()
  await expect.poll(() => gateway().registry.find('sky')?.measurements?.samples).toBeCloseTo(1, 1)
})

test('a connection broken by a client does not count against the agent', async () => {
  const sky = await agent('sky', weather)
  sky.on['message/send'] = () => new Promise(() => {})
  for (let time = 0; time < 6; time += 1) {
    const socket = net.connect(Number(new URL(gateway().addresses.local).port), '127.0.0.1')
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: saying('weather forecast'),
    })
    socket.write(
      `POST / HTTP/1.1\r\nhost: x\r\nauthorization: ${bearer('alice')}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    await expect.poll(() => sky.sent().length).toBe(time + 1)
    socket.destroy()
  }
  expect(gateway().registry.find('sky')?.quarantine).toBeUndefined()
  delete sky.on['message/send']
  expect((await call('message/send', saying('weather forecast'))).headers.get('x-agent')).toBe('sky')
})

test('pages of an external agent are sandboxed on every route', async () => {
  const sky = await agent('sky', weather, { origin: 'registered' })
  sky.on['tasks/list'] = ({ response }) => void response.writeHead(200, { 'x-next-cursor': 'a' }).end('{}')
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/list', params: {} })
  const named = await post('/agents/sky/', body)
  expect(named.headers.get('content-security-policy')).toBe('sandbox')
  expect(named.headers.get('x-next-cursor')).toBe('a')
  const routed = await call('message/send', saying('weather forecast'))
  expect(routed.headers.get('content-security-policy')).toBe('sandbox')
})

test('a POST of JSON to a named agent keeps status, body and headers unmodified in both directions', async () => {
  const sky = await agent('sky', weather)
  sky.on['odd'] = ({ response }) => {
    response.writeHead(418, {
      'content-type': 'x/y',
      link: ['<a>', '<b>'],
      connection: 'x-hop',
      'x-hop': '1',
    })
    response.end(Buffer.from([0, 255]))
  }
  const body = ' {"method" : "odd", "id":1.0, "é":"\\ud83d"} '
  const response = await fetch(`${gateway().addresses.public}/agents/sky/?a=%20b`, {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8', 'x-did': 'did:x' },
    body,
  })
  expect([response.status, response.headers.get('content-type')]).toEqual([418, 'x/y'])
  expect(response.headers.get('link')).toBe('<a>, <b>')
  expect(response.headers.get('x-hop')).toBeNull()
  expect(Buffer.from(await response.arrayBuffer())).toEqual(Buffer.from([0, 255]))
  expect(sky.calls[0]).toMatchObject({
    url: '/?a=%20b',
    body,
    headers: { 'x-did': 'did:x', 'x-forwarded-prefix': '/agents/sky' },
  })
})

test.each(['known', 'found'])(
  'the response to a named call to an agent that is %s to be down carries the id of the call if it can be read',
  async (how) => {
    const sky = await agent('sky', weather)
    await sky.stop()
    const { registry } = gateway()
    if (how === 'known') registry.setStatus(registry.find('sky')?.id ?? '', 'unreachable')
    const answer = async (body: string) => {
      const { status, json } = await post('/agents/sky/', body)
      return [status, json.error.code, json.id]
    }
    expect(await answer('{"jsonrpc":"2.0","id":"seven","method":"tasks/list"}')).toEqual([
      503,
      -32042,
      'seven',
    ])
    expect(await answer('{"jsonrpc":"2.0","id":7,"method":"odd"}')).toEqual([503, -32042, 7])
    for (const body of ['{"id":', '', '{"id":{}}']) expect(await answer(body)).toEqual([503, -32042, null])
  },
)

test('no accepted message is lost or processed twice if an agent is killed under load', async () => {
  const sky = await agent('sky', weather)
  const second = await agent('sky-two', 'Weather forecast')
  const done = new Map<string, number>()
  for (const one of [sky, second]) {
    const keys = new Map<string, object>()
    one.on['message/send'] = async ({ params, headers }) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      const key = String(headers['idempotency-key'])
      const { messageId } = params['message'] as { messageId: string }
      if (!keys.has(key)) done.set(messageId, (done.get(messageId) ?? 0) + 1)
      const task = keys.get(key) ?? one.take(params)
      keys.set(key, task)
      return task
    }
  }
  const { port } = sky
  let sent = 0
  const taken: string[] = []
  let unknown = 0
  const client = async () => {
    while (sent < 120) {
      sent += 1
      if (sent === 40) await sky.stop()
      if (sent === 80) await sky.listen(port)
      const params = saying('weather forecast for any city')
      const answer = await call('message/send', params)
      if (answer.status === 200) taken.push(params.message.messageId)
      else if (answer.json.error.data.reason === 'outcome_unknown') unknown += 1
      else throw new Error(answer.text)
    }
  }
  await Promise.all(Array.from({ length: 8 }, client))
  expect(taken.length + unknown).toBe(sent)
  for (const id of taken) expect(done.get(id)).toBe(1)
  expect([...done.values()].every((times) => times === 1)).toBe(true)
  expect(second.sent().length).toBeGreaterThan(0)
})

test('completed tasks and ratings train the routing, and clearing a context removes its training example', async () => {
  const sky = await agent('sky', weather)
  await agent('board', chess)
  const ask = async () => {
    const body = JSON.stringify({ task_summary: 'blimflarg', weights: { skill_match: 1 } })
    const { json } = await post('/agent/negotiation', body)
    return json.candidates.find((one: { agent: { slug: string } }) => one.agent.slug === 'sky')
  }
  const before = await ask()
  // A repeated text would count once.
  const texts = [
    'blimflarg weather forecast',
    'forecast for the weekend, blimflarg',
    'weather in any city, blimflarg',
    'blimflarg weather on the coast',
    'forecast of storms and blimflarg',
    'blimflarg and weather in the mountains',
  ]
  const contexts: [string, string][] = []
  for (const [number, text] of texts.entries()) {
    const headers = { authorization: bearer(`caller-${number}`) }
    const sent = await call('message/send', saying(text), headers)
    expect(sent.headers.get('x-agent')).toBe('sky')
    const { id, context_id } = sent.json.result as { id: string; context_id: string }
    contexts.push([context_id, `caller-${number}`])
    const task = sky.tasks.get(id)
    if (task !== undefined) task.status.state = 'completed'
    await call('tasks/get', { task_id: id }, headers)
    await call('tasks/feedback', { task_id: id, feedback: 'good', rating: 5 }, headers)
  }
  await expect.poll(async () => (await ask()).score).toBeGreaterThan(before.score)
  const learned = await ask()
  expect(learned.reasons.join()).toContain(' similar tasks well, as ')
  for (const [context_id, client] of contexts)
    await call('contexts/clear', { context_id }, { authorization: bearer(client) })
  await expect.poll(async () => (await ask()).score).toBe(before.score)
})
