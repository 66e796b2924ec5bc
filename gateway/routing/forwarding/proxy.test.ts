import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import net from 'node:net'
import { text } from 'node:stream/consumers'
import { createServer } from '@parley/kit/http/server'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import type { Resolver } from '@parley/kit/net/resolve-public'
import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { afterEach, expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { createExternalUpstream } from './external-upstream.ts'
import { proxyAgents } from './proxy.ts'
import { acceptsAnyToken, exchangedToken, noCards } from './testing.ts'
import { createUpstream } from './upstream.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.()
})

async function listen(server: http.Server | net.Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(() => {
    if (server instanceof http.Server) server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Starts a gateway in front of one agent, `calc`, that responds with `handle`. */
async function gatewayBefore(
  handle: http.RequestListener,
  options: {
    status?: AgentEntry['status']
    base?: string
    bodyMaxBytes?: number
    port?: number
    slowMs?: number
    entry?: Partial<AgentEntry>
    allowed?: string
    resolver?: Resolver
  } = {},
) {
  const port = options.port ?? (await listen(http.createServer(handle)))
  const entry = {
    slug: 'calc',
    url: `http://127.0.0.1:${port}${options.base ?? ''}`,
    status: options.status ?? 'ready',
    origin: 'supervised',
    admitted: true,
    ...options.entry,
  } as AgentEntry
  const log = makeLog({ level: 'silent', name: 'test' })
  const metrics = createMetrics()
  const app = createServer({ log, metrics })
  const upstream = createUpstream({ connectTimeoutMs: 5000, headersTimeoutMs: options.slowMs ?? 60_000 })
  const outside = createExternalUpstream({
    connectTimeoutMs: 5000,
    allowed: parseAllowedHosts(options.allowed ?? ''),
    ...(options.resolver !== undefined && { resolver: options.resolver }),
  })
  await proxyAgents(app, {
    find: (slug) => (slug === 'calc' ? { entry } : undefined),
    tokens: acceptsAnyToken,
    cardOut: noCards,
    dispatcherFor: ({ origin }) => (origin === 'supervised' ? upstream : outside),
    ...(options.bodyMaxBytes !== undefined && { bodyMaxBytes: options.bodyMaxBytes }),
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  open.push(async () => {
    app.server.closeAllConnections()
    await app.close()
    await upstream.destroy()
    await outside.destroy()
  })
  return { url, port: Number(new URL(url).port), metrics }
}

/** Sends a raw path, which `fetch` would normalize. */
async function raw(port: number, path: string, options: http.RequestOptions = {}, body?: string) {
  const request = http.request({ port, host: '127.0.0.1', path, agent: false, ...options })
  request.end(body)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

const echo: http.RequestListener = (request, response) => {
  const { method, url, headers } = request
  const answer = async () => response.end(JSON.stringify({ method, url, headers, body: await text(request) }))
  void answer()
}

test.each([
  ['/agents/calc', '/'],
  ['/agents/calc/', '/'],
  ['/agents/calc/tasks/get', '/tasks/get'],
  ['/agents/calc/agent/skills?tag=a%20b&x=1&x=2', '/agent/skills?tag=a%20b&x=1&x=2'],
  ['/agents/calc/a%20b/%C3%A9?q=?', '/a%20b/%C3%A9?q=?'],
  ['http://gateway.example/agents/calc', '/'],
  ['HTTP://gateway.example:7400/agents/calc/health?a=/b', '/health?a=/b'],
])('%s reaches the agent as %s', async (path, url) => {
  const gateway = await gatewayBefore(echo)
  expect(JSON.parse((await raw(gateway.port, path)).body)).toMatchObject({ method: 'GET', url })
})

test.each([
  ['GET', '/agents/calc/operator/tasks'],
  ['POST', '/agents/calc/operator/tasks/1/cancel'],
  ['GET', '/agents/calc/%6fperator/queue'],
  ['GET', '/agents/calc/OPERATOR'],
])('%s %s is refused with 404, and never reaches the agent', async (method, path) => {
  let reached = 0
  const gateway = await gatewayBefore((_request, response) => {
    reached += 1
    response.end()
  })
  const answer = await raw(gateway.port, path, { method })
  expect([answer.status, reached]).toEqual([404, 0])
  expect(JSON.parse(answer.body).error.data.reason).toBe('route')
})

test('an agent with a path in its address receives requests below this path', async () => {
  const gateway = await gatewayBefore(echo, { base: '/hosted/calc' })
  expect(JSON.parse((await raw(gateway.port, '/agents/calc/health')).body).url).toBe('/hosted/calc/health')
})

test.each([
  '/agents/calc/../registry',
  '/agents/calc/a/./b',
  '/agents/calc/%2e%2e/x',
  '/agents/calc/.%2E/x',
  '/agents/calc/a%2fb',
  '/agents/calc/a%5Cb',
  '/agents/calc/a\\b',
  '/agents/calc/agent/skills#x',
  '/agents/calc/%00',
  '/agents/calc/%ff',
  '/agents/calc/%zz',
  '/agents/calc//other.example/x',
  '/agents/../agents/calc/',
])('%s is rejected with 400 and the error envelope, and never reaches the agent', async (path) => {
  let reached = 0
  const gateway = await gatewayBefore((_request, response) => {
    reached++
    response.end()
  })
  const { status, body } = await raw(gateway.port, path)
  expect(status).toBe(400)
  expect(JSON.parse(body)).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32600 } })
  expect(reached).toBe(0)
})

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])(
  'with %s, the body arrives unmodified for every content type',
  async (method) => {
    const gateway = await gatewayBefore(echo)
    const body = '{"a": 1,\n "é": "\\ud83d\\ude00", "b":1.0}  '
    for (const type of ['application/json', 'text/csv', undefined]) {
      const headers = { 'content-length': Buffer.byteLength(body), ...(type && { 'content-type': type }) }
      const answer = await raw(gateway.port, '/agents/calc/', { method, headers }, body)
      expect(JSON.parse(answer.body)).toMatchObject({ method, body })
    }
    const chunked = await raw(
      gateway.port,
      '/agents/calc/',
      { method, headers: { 'transfer-encoding': 'chunked' } },
      body,
    )
    expect(JSON.parse(chunked.body)).toMatchObject({ method, body })
  },
)

test.each([
  ['is not JSON', '{"id":1,"method":"agent/get\\u0045\\u0078tendedCard",', -32700],
  ['is not a call', '{"id":1,"method":"agent/get\\u0045\\u0078tendedCard"}', -32600],
])(
  'an escaped method for the extended card does not reach the agent if the body %s',
  async (_, body, code) => {
    let reached = 0
    const gateway = await gatewayBefore((_request, response) => {
      reached++
      response.end()
    })
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const answer = await raw(gateway.port, '/agents/calc/', { method: 'POST', headers }, body)
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code } })
    expect([answer.status, reached]).toEqual([400, 0])
  },
)

test('forwarding and hop-by-hop headers of the caller are dropped, and other headers on the allow list are forwarded', async () => {
  const gateway = await gatewayBefore(echo)
  const answer = await raw(gateway.port, '/agents/calc/', {
    method: 'POST',
    headers: {
      host: 'parley.example',
      authorization: 'Bearer abc',
      'x-did': 'did:parley:a:agent:b',
      'x-request-id': 'my-request',
      'x-forwarded-for': '6.6.6.6',
      'x-forwarded-host': 'evil.example',
      'x-forwarded-port': '1',
      forwarded: 'for=6.6.6.6',
      'x-real-ip': '6.6.6.6',
      connection: 'x-drop-me, keep-alive',
      'x-drop-me': '1',
      'keep-alive': 'timeout=5',
      'proxy-authorization': 'Basic x',
      te: 'trailers',
      expect: '100-continue',
    },
  })
  const { headers } = JSON.parse(answer.body) as { headers: Record<string, string> }
  expect(headers).toMatchObject({
    authorization: `Bearer ${exchangedToken}`,
    'x-did': 'did:parley:a:agent:b',
    'x-request-id': 'my-request',
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-host': 'parley.example',
    'x-forwarded-proto': 'http',
    'x-forwarded-prefix': '/agents/calc',
  })
  expect(headers['host']).not.toBe('parley.example')
  for (const name of [
    'x-forwarded-port',
    'forwarded',
    'x-real-ip',
    'x-drop-me',
    'proxy-authorization',
    'te',
    'expect',
  ]) {
    expect(headers).not.toHaveProperty(name)
  }
})

test('status, listed headers and body of a response are forwarded unmodified, and all other headers are dropped', async () => {
  const bytes = Buffer.from([0, 255, 1, 254])
  const gateway = await gatewayBefore((_request, response) => {
    response.writeHead(402, {
      'x-next-cursor': 'a',
      'x-internal-host': 'db-1',
      'set-cookie': ['a=1', 'b=2'],
      'content-encoding': 'x-odd',
      connection: 'etag',
      etag: '"1"',
    })
    response.end(bytes)
  })
  const response = await fetch(`${gateway.url}/agents/calc/file`)
  expect(response.status).toBe(402)
  expect(response.headers.get('x-next-cursor')).toBe('a')
  expect(response.headers.get('x-internal-host')).toBeNull()
  expect(response.headers.getSetCookie()).toEqual([])
  expect(response.headers.get('etag')).toBeNull()
  expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes)
})

test('HEAD gets no response body, and the body of a GET is not forwarded', async () => {
  const gateway = await gatewayBefore((request, response) => {
    response.setHeader('etag', request.headers['content-length'] ?? 'none')
    response.setHeader('content-length', '5')
    response.end('hello')
  })
  expect(await raw(gateway.port, '/agents/calc/x', { method: 'HEAD' })).toMatchObject({
    status: 200,
    body: '',
  })
  const odd = await raw(
    gateway.port,
    '/agents/calc/x',
    { method: 'GET', headers: { 'content-length': 3 } },
    'abc',
  )
  expect(odd).toMatchObject({ status: 200, headers: { etag: 'none' }, body: 'hello' })
})

test('frames of an event stream arrive one by one, as the agent sends them', async () => {
  let send = (_frame: string) => undefined as unknown
  const gateway = await gatewayBefore((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    send = (frame) => response.write(frame)
    send('data: 0\n\n')
  })
  const response = await fetch(`${gateway.url}/agents/calc/message/stream`, { method: 'POST', body: '{}' })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toBe('data: 0\n\n')
  send('id: 1\ndata: 1\n\n')
  expect((await reader?.read())?.value).toBe('id: 1\ndata: 1\n\n')
  await reader?.cancel()
})

test.each(['before the response starts', 'in the middle of a stream'])(
  'a client that disconnects %s closes the request at the agent',
  async (when) => {
    const started = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<boolean>()
    const gateway = await gatewayBefore((_request, response) => {
      response.once('close', () => closed.resolve(response.writableFinished))
      if (when.includes('stream')) response.write('data: 0\n\n')
      started.resolve()
    })
    const leave = new AbortController()
    const call = fetch(`${gateway.url}/agents/calc/`, { method: 'POST', body: '{}', signal: leave.signal })
    if (when.includes('stream')) await (await call).body?.getReader().read()
    await started.promise
    leave.abort()
    await call.catch(() => undefined)
    expect(await closed.promise).toBe(false)
  },
)

test('an unknown slug is rejected with 404, -32040 and the reason agent', async () => {
  const gateway = await gatewayBefore(echo)
  const response = await fetch(`${gateway.url}/agents/nobody/health`)
  expect(response.status).toBe(404)
  expect(await response.json()).toMatchObject({ error: { code: -32040, data: { reason: 'agent' } } })
})

test.each<[string, { status?: AgentEntry['status']; port?: number }, string]>([
  ['counted as unreachable', { status: 'unreachable' }, 'agent_down'],
  ['being started', { status: 'starting' }, 'agent_down'],
  ['refusing the connection', { port: 1 }, 'agent_down'],
])(
  'a request to an agent that is %s immediately gets 503 with -32042 and Retry-After',
  async (_what, options, reason) => {
    const gateway = await gatewayBefore(echo, options)
    const response = await fetch(`${gateway.url}/agents/calc/`, { method: 'POST', body: '{}' })
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(await response.json()).toMatchObject({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32042, data: { reason, agent: 'calc' } },
    })
  },
)

test.each([
  ['breaks the connection before it responds', (socket: net.Socket) => socket.destroy(), 'agent_broke_off'],
  ['does not respond with HTTP', (socket: net.Socket) => socket.end('hello\r\n'), 'agent_broke_off'],
  ['never responds', () => undefined, 'agent_slow'],
])(
  'a request to an agent that %s gets 503 with an unknown outcome after one attempt',
  async (_what, answer, reason) => {
    let asked = 0
    const port = await listen(
      net.createServer((socket) => {
        socket.on('error', () => undefined)
        socket.once('data', () => {
          asked++
          answer(socket)
        })
      }),
    )
    const gateway = await gatewayBefore(echo, { port, slowMs: 500 })
    const response = await fetch(`${gateway.url}/agents/calc/tasks`)
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ error: { code: -32042, data: { reason } } })
    expect(asked).toBe(1)
  },
)

test("an agent's own 503 is forwarded unmodified, and the request is not repeated", async () => {
  let asked = 0
  const gateway = await gatewayBefore((_request, response) => {
    asked++
    response.writeHead(503, { 'retry-after': '0' }).end('busy')
  })
  const response = await fetch(`${gateway.url}/agents/calc/health`)
  expect([response.status, await response.text(), asked]).toEqual([503, 'busy', 1])
})

test.each([
  ['announced', { 'content-length': 2000 }],
  ['chunked', { 'transfer-encoding': 'chunked' }],
])('a body over the limit (%s) is rejected with 413 and the error envelope', async (_how, headers) => {
  const gateway = await gatewayBefore(echo, { bodyMaxBytes: 1000 })
  const { status, body } = await raw(
    gateway.port,
    '/agents/calc/',
    { method: 'POST', headers },
    'x'.repeat(2000),
  )
  expect(status).toBe(413)
  expect(JSON.parse(body)).toMatchObject({ error: { code: -32600 } })
})

test('a redirect is forwarded, not followed', async () => {
  const gateway = await gatewayBefore((_request, response) => {
    response.writeHead(302, { location: '/elsewhere' }).end()
  })
  const response = await fetch(`${gateway.url}/agents/calc/x`, { redirect: 'manual' })
  expect([response.status, response.headers.get('location')]).toEqual([302, '/elsewhere'])
})

test.each<[string, Partial<AgentEntry>, string]>([
  ['that is not admitted', { admitted: false }, 'not_admitted'],
  [
    'that an operator quarantined',
    { quarantine: { since: '', reason: 'lies', by: 'operator' } },
    'quarantined',
  ],
])(
  'a call to an agent %s gets 503 -32042, and the agent receives neither the request nor the token',
  async (_what, entry, reason) => {
    let reached = 0
    const gateway = await gatewayBefore((_request, response) => response.end(String(++reached)), { entry })
    const headers = { authorization: 'Bearer secret' }
    const answer = await raw(gateway.port, '/agents/calc/', { method: 'POST', headers }, '{}')
    expect(answer.status).toBe(503)
    expect(answer.headers['retry-after']).toBe('60')
    expect(JSON.parse(answer.body)).toMatchObject({
      error: { code: -32042, data: { reason, agent: 'calc' } },
    })
    expect(reached).toBe(0)
  },
)

const fromOutside = { origin: 'registered' as const }

test('an external agent is reachable at an allowed host', async () => {
  const gateway = await gatewayBefore(echo, { entry: fromOutside, allowed: '127.0.0.1' })
  const answer = await raw(gateway.port, '/agents/calc/x', { method: 'POST' }, 'hello')
  expect(JSON.parse(answer.body)).toMatchObject({ url: '/x', body: 'hello' })
})

test('an external agent at a private address is unreachable, even if the registry lists it', async () => {
  let reached = 0
  const gateway = await gatewayBefore((_request, response) => response.end(String(++reached)), {
    entry: fromOutside,
  })
  expect((await raw(gateway.port, '/agents/calc/')).status).toBe(503)
  expect(reached).toBe(0)
})

test('a host name that now resolves to a private address is unreachable', async () => {
  let reached = 0
  const port = await listen(http.createServer((_request, response) => response.end(String(++reached))))
  const gateway = await gatewayBefore(echo, {
    entry: { ...fromOutside, url: `http://moved.example:${port}` },
    resolver: async () => ['203.0.113.7', '127.0.0.1'],
  })
  const answer = await raw(gateway.port, '/agents/calc/')
  expect(JSON.parse(answer.body)).toMatchObject({ error: { code: -32042, data: { reason: 'agent_down' } } })
  expect(answer.body).not.toContain('127.0.0.1')
  expect(reached).toBe(0)
})
