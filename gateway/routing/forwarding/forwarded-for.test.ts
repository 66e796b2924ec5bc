import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { capturePageHeaders } from '@parley/engine/payments/capture/capture-page'
import { RequestLimits } from '@parley/kit/http/request-limits'
import { contentPolicy } from '@parley/kit/http/security-headers'
import { createServer, type ServerOptions } from '@parley/kit/http/server'
import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { afterEach, expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { proxyAgents } from './proxy.ts'
import { acceptsAnyToken, noCards } from './testing.ts'
import { createUpstream } from './upstream.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.()
})

const log = makeLog({ level: 'silent', name: 'test' })

/** A gateway in front of an agent that responds with `handle`. */
async function gatewayBefore(
  agent: string,
  { origin = 'supervised', ...options }: Partial<ServerOptions> & Partial<Pick<AgentEntry, 'origin'>> = {},
) {
  const app = createServer({ log, metrics: createMetrics(), ...options })
  const upstream = createUpstream()
  const entry = { slug: 'calc', url: agent, origin, status: 'ready', admitted: true } as AgentEntry
  const find = (slug: string) => (slug === 'calc' ? { entry } : undefined)
  await proxyAgents(app, { find, dispatcherFor: () => upstream, tokens: acceptsAnyToken, cardOut: noCards })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  open.push(async () => {
    app.server.closeAllConnections()
    await app.close()
    await upstream.destroy()
  })
  return `${url}/agents/calc`
}

async function plainAgent(handle: http.RequestListener): Promise<string> {
  const server = http.createServer(handle).listen(0, '127.0.0.1')
  await once(server, 'listening')
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const echoHeaders: http.RequestListener = (request, response) => response.end(JSON.stringify(request.headers))

const spoofed = {
  'x-forwarded-for': '203.0.113.1, 203.0.113.2',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-user': 'operator',
  'x-real-ip': '203.0.113.1',
  'true-client-ip': '203.0.113.1',
  'cf-connecting-ip': '203.0.113.1',
  forwarded: 'for=203.0.113.1',
}

async function reportSignal(url: string, headers: Record<string, string>) {
  return (await (await fetch(`${url}/`, { headers })).json()) as Record<string, string>
}

test('the gateway replaces the forwarding headers of an untrusted client', async () => {
  const gateway = await gatewayBefore(await plainAgent(echoHeaders))
  const headers = await reportSignal(gateway, spoofed)
  expect(headers).toMatchObject({
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http',
    'x-forwarded-host': new URL(gateway).host,
    'x-forwarded-prefix': '/agents/calc',
  })
  const { 'x-forwarded-for': _, ...rest } = spoofed
  const claimed = Object.keys(rest).filter((name) => !/^x-forwarded-(proto|host)$/.test(name))
  expect(claimed.filter((name) => name in headers)).toEqual([])
})

test.each([
  ['the client', '203.0.113.1', '203.0.113.1, 127.0.0.1'],
  ['addresses claimed by the client are dropped', '192.0.2.9, 203.0.113.1', '203.0.113.1, 127.0.0.1'],
  [
    'the client behind two trusted proxies',
    '192.0.2.9, 203.0.113.1, 10.1.2.3',
    '203.0.113.1, 10.1.2.3, 127.0.0.1',
  ],
  ['no address', '', '127.0.0.1'],
  ['an invalid address', 'unknown', '127.0.0.1'],
  ['an invalid address before the client', '<script>, 203.0.113.1', '203.0.113.1, 127.0.0.1'],
  ['IPv6', '2001:db8::1', '2001:db8::1, 127.0.0.1'],
])('the gateway extends the forwarding headers of a trusted proxy (%s)', async (_name, claimed, handedOn) => {
  const gateway = await gatewayBefore(await plainAgent(echoHeaders), {
    trustedProxies: ['127.0.0.1', '10.0.0.0/8'],
  })
  const headers = await reportSignal(gateway, { ...spoofed, 'x-forwarded-for': claimed })
  expect(headers).toMatchObject({
    'x-forwarded-for': handedOn,
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'evil.example',
  })
})

test('an agent behind the gateway rate-limits each client by its own address', async () => {
  const app = createServer({
    log,
    metrics: createMetrics(),
    trustedProxies: ['127.0.0.1'],
    limits: new RequestLimits({ perMinute: 1 }),
  })
  app.get('/', async (request) => request.ip)
  open.push(() => app.close())
  const agent = await app.listen({ port: 0, host: '127.0.0.1' })
  const gateway = await gatewayBefore(agent, { trustedProxies: ['127.0.0.1'] })
  const ask = async (chain: string) => {
    const response = await fetch(`${gateway}/`, { headers: { 'x-forwarded-for': chain } })
    return [response.status, (await response.text()).slice(0, 12)]
  }
  expect(await ask('203.0.113.1')).toEqual([200, '203.0.113.1'])
  expect(await ask('203.0.113.2')).toEqual([200, '203.0.113.2'])
  expect((await ask('198.51.100.1, 203.0.113.1'))[0]).toBe(429)
})

test('a page of a supervised agent runs no script but that of the payment page', async () => {
  const payment = capturePageHeaders['content-security-policy']
  const own = "default-src 'self'; script-src 'unsafe-inline'"
  const agent = await plainAgent((request, response) => {
    if (request.url === '/own') response.setHeader('content-security-policy', own)
    if (request.url === '/pay/1') response.setHeader('content-security-policy', payment)
    if (request.url === '/json') response.setHeader('content-security-policy', contentPolicy)
    response.end('<p>hello')
  })
  const gateway = await gatewayBefore(agent, { publicUrl: 'https://agents.example' })
  const policyOf = async (path: string) =>
    (await fetch(`${gateway}${path}`)).headers.get('content-security-policy')
  expect(await policyOf('/plain')).toBe(payment)
  expect(await policyOf('/own')).toBe(`${own}, ${payment}`)
  expect(await policyOf('/pay/1')).toBe(payment)
  expect(await policyOf('/json')).toBe(contentPolicy)
})

test('a proxied response keeps the headers of the agent, and those about the gateway’s own address', async () => {
  const agent = await plainAgent((_request, response) => response.end('{}'))
  const gateway = await gatewayBefore(agent, { publicUrl: 'https://agents.example' })
  const { headers } = await fetch(`${gateway}/plain`)
  expect(headers.has('referrer-policy')).toBe(false)
  expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
})

test('a page of an external agent is sandboxed in addition to its own policy, and its body is unmodified', async () => {
  const page = "script-src 'self'; sandbox allow-scripts"
  const agent = await plainAgent((request, response) => {
    if (request.url === '/own') response.setHeader('content-security-policy', page)
    if (request.url === '/two') response.setHeader('content-security-policy', ["img-src 'self'", page])
    response.setHeader('x-content-type-options', 'sniff')
    response.setHeader('content-type', 'text/html').end('<script>alert(1)</script>')
  })
  const gateway = await gatewayBefore(agent, { origin: 'registered' })
  for (const [path, policy] of [
    ['/plain', 'sandbox'],
    ['/own', `${page}, sandbox`],
    ['/two', `img-src 'self', ${page}, sandbox`],
  ]) {
    for (const init of [{}, { method: 'POST', body: 'a=b', headers: { 'content-type': 'text/plain' } }]) {
      const answer = await fetch(`${gateway}${path}`, init)
      expect(answer.headers.get('content-security-policy')).toBe(policy)
      expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
      expect(await answer.text()).toBe('<script>alert(1)</script>')
    }
  }
})

const json = { 'content-type': 'application/json' }
const post = { method: 'POST', body: '{}', headers: json }

test.each([
  ['set-cookie', 'parley_interaction=mine; Path=/oauth2'],
  ['clear-site-data', '"*"'],
  ['www-authenticate', 'Basic realm="gateway"'],
])('%s affects the whole origin and is forwarded from no agent', async (name, value) => {
  const agent = await plainAgent((_, response) => response.setHeader(name, value).end('{}'))
  for (const gateway of [await gatewayBefore(agent, { origin: 'registered' }), await gatewayBefore(agent)])
    for (const init of [{}, post]) expect((await fetch(`${gateway}/`, init)).headers.get(name)).toBeNull()
})

test.each([
  ['access-control-allow-origin', '*'],
  ['access-control-allow-credentials', 'true'],
])(
  '%s affects the whole origin: forwarded from a supervised agent, dropped from an external one',
  async (name, value) => {
    const agent = await plainAgent((_, response) => response.setHeader(name, value).end('{}'))
    const [outside, ours] = [await gatewayBefore(agent, { origin: 'registered' }), await gatewayBefore(agent)]
    for (const init of [{}, post]) {
      expect((await fetch(`${outside}/`, init)).headers.get(name)).toBeNull()
      expect((await fetch(`${ours}/`, init)).headers.get(name)).toBe(value)
    }
  },
)

test.each([
  ['strict-transport-security', 'max-age=31536000'],
  ['service-worker-allowed', '/'],
  ['alt-svc', 'h3="evil.example:443"'],
  ['nel', '{}'],
  ['report-to', '{}'],
  ['refresh', '0; url=https://evil.example'],
  ['x-accel-redirect', '/internal/file'],
  ['x-sendfile', '/etc/passwd'],
  ['x-agent', 'another'],
  ['x-powered-by', 'something'],
  ['server', 'something/1.0'],
  ['x-anything-else', 'value'],
])(
  "the header %s of an agent's response is dropped, because it is not on the allow list",
  async (name, value) => {
    const agent = await plainAgent((_, response) => response.setHeader(name, value).end('{}'))
    for (const origin of ['registered', 'supervised'] as const) {
      const gateway = await gatewayBefore(agent, { origin })
      for (const init of [{}, post]) expect((await fetch(`${gateway}/`, init)).headers.get(name)).toBeNull()
    }
  },
)

test.each([
  ['www-authenticate', 'Bearer error="invalid_token"'],
  ['location', '/agents/calc/there'],
  ['retry-after', '3'],
  ['x-next-cursor', 'abc'],
  ['x-accel-buffering', 'no'],
  ['etag', '"1"'],
  ['deprecation', '@1767225600'],
  ['payment-response', 'e30='],
  ['x-payment-response', 'e30='],
  ['idempotency-key', 'one'],
  ['mcp-session-id', 'one'],
  ['a2a-extensions', 'https://example.com/ext'],
  ['x-ratelimit-remaining', '3'],
  ['traceresponse', '00-1-2-01'],
])('the header %s of an external agent is forwarded', async (name, value) => {
  const agent = await plainAgent((_, response) => response.setHeader(name, value).end('{}'))
  const gateway = await gatewayBefore(agent, { origin: 'registered' })
  for (const init of [{}, post]) expect((await fetch(`${gateway}/`, init)).headers.get(name)).toBe(value)
})

test('a request keeps the id that the gateway gave it, whatever an external agent returns', async () => {
  const agent = await plainAgent((_, response) => response.setHeader('x-request-id', 'other').end('{}'))
  const gateway = await gatewayBefore(agent, { origin: 'registered' })
  for (const init of [{}, post]) {
    const headers = { ...json, 'x-request-id': 'mine' }
    expect((await fetch(`${gateway}/`, { ...init, headers })).headers.get('x-request-id')).toBe('mine')
  }
})

const passing = {
  accept: 'text/event-stream',
  'a2a-version': '1.0',
  'a2a-extensions': 'https://example.com/ext',
  baggage: 'a=1',
  'idempotency-key': 'one',
  'if-none-match': '"1"',
  'last-event-id': '3',
  'mcp-protocol-version': '2025-06-18',
  'mcp-session-id': 'one',
  'payment-signature': 'e30=',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  tracestate: 'a=1',
  'user-agent': 'someone/1.0',
  'x-did': 'did:parley:a:agent:1',
  'x-did-audience': 'did:parley:b:agent:2',
  'x-did-signature': 'abc',
  'x-did-timestamp': '1',
  'x-payment': 'e30=',
  'x-payment-session': 'one',
}
const dropped = { 'x-api-key': 'secret', 'x-amz-security-token': 'secret', 'x-user': 'root', date: 'now' }

test('only request headers on the allow list are forwarded to an agent', async () => {
  const agent = await plainAgent(echoHeaders)
  for (const origin of ['registered', 'supervised'] as const) {
    const gateway = await gatewayBefore(agent, { origin })
    for (const init of [{}, post]) {
      const headers = { ...json, ...passing, ...dropped }
      const reportSignal = (await (await fetch(`${gateway}/`, { ...init, headers })).json()) as object
      expect(reportSignal).toMatchObject(passing)
      for (const name of Object.keys(dropped)) expect(reportSignal).not.toHaveProperty(name)
    }
  }
})

test('cookies and proofs of possession for the gateway are sent to no agent', async () => {
  const agent = await plainAgent(echoHeaders)
  const [outside, ours] = [await gatewayBefore(agent, { origin: 'registered' }), await gatewayBefore(agent)]
  for (const init of [{}, post]) {
    const headers = { ...json, cookie: 'parley_session=1', dpop: 'proof' }
    for (const url of [outside, ours]) {
      const received = await (await fetch(`${url}/`, { ...init, headers })).json()
      expect(received).not.toHaveProperty('cookie')
      expect(received).not.toHaveProperty('dpop')
    }
  }
})

test('a response that the gateway itself creates has the gateway’s security headers', async () => {
  const gateway = await gatewayBefore('http://127.0.0.1:1')
  for (const path of ['/', '/../x%2f', '/agents/none/']) {
    const answer = await fetch(`${gateway}${path}`)
    expect(answer.headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'")
  }
})
