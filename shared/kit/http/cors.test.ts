import { type TestAgent, testAgent } from '@parley/agent/testing'
import { raw, rpc } from '@parley/tools/testing/raw-http'
import { afterEach, expect, test } from 'vitest'

let agent: TestAgent | undefined
afterEach(async () => {
  await agent?.[Symbol.asyncDispose]()
  agent = undefined
})

async function agentFor(origins: string, env: Record<string, string> = {}): Promise<TestAgent> {
  agent = await testAgent({ handle: ({ text }) => text }, { env: { CORS_ORIGINS: origins, ...env } })
  return agent
}

const corsHeaders = (headers: Headers) =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-'))
const preflight = (to: TestAgent, origin: string, path = '/') =>
  raw(to, {
    method: 'OPTIONS',
    path,
    headers: {
      origin,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,content-type',
    },
  })

test('without the setting, cross-origin calls are not allowed', async () => {
  const closed = await agentFor('')
  const response = await preflight(closed, 'https://app.example')
  expect([response.status, response.json.error.code, corsHeaders(response.headers)]).toEqual([
    405,
    -32600,
    [],
  ])
  const sent = await rpc(closed, 'tasks/list', {}, { headers: { origin: 'https://app.example' } })
  expect([sent.status, corsHeaders(sent.headers)]).toEqual([200, []])
})

test('pages from a configured origin may send calls with a token but without cookies', async () => {
  const to = await agentFor('https://app.example, http://localhost:3000')
  for (const origin of ['https://app.example', 'http://localhost:3000']) {
    const response = await preflight(to, origin)
    expect([response.status, response.text]).toEqual([204, ''])
    expect(response.headers.get('access-control-allow-origin')).toBe(origin)
    expect(response.headers.get('access-control-allow-methods')).toContain('POST')
    expect(response.headers.get('access-control-allow-headers')).toContain('Authorization')
    expect(response.headers.get('access-control-allow-headers')).toContain('X-DID-Signature')
    expect(response.headers.get('access-control-max-age')).toBe('600')
    const sent = await rpc(to, 'tasks/list', {}, { headers: { origin } })
    expect([sent.status, sent.headers.get('access-control-allow-origin')]).toEqual([200, origin])
    expect(sent.headers.get('vary')).toContain('Origin')
    for (const answer of [response, sent])
      expect(answer.headers.has('access-control-allow-credentials')).toBe(false)
  }
})

test('pages from a configured origin may read the API’s response headers', async () => {
  const to = await agentFor('https://app.example')
  const { headers } = await rpc(to, 'tasks/list', {}, { headers: { origin: 'https://app.example' } })
  expect(headers.get('access-control-expose-headers')?.split(', ').sort()).toEqual([
    'A2A-Extensions',
    'A2A-Version',
    'Idempotency-Key',
    'PAYMENT-REQUIRED',
    'PAYMENT-RESPONSE',
    'Retry-After',
    'WWW-Authenticate',
    'X-A2A-Extensions',
    'X-Agent',
    'X-Negotiation-Id',
    'X-Next-Cursor',
    'X-PAYMENT-RESPONSE',
    'X-Parley-Chain',
    'X-Parley-Context',
    'X-Parley-Incomplete',
    'X-Parley-Task',
    'X-Request-Id',
  ])
})

test.each([
  'https://app.example.evil.example',
  'https://evil.example',
  'https://app.example:444',
  'http://app.example',
  'https://APP.example',
  'https://app.example/',
  'https://app.example, https://evil.example',
  'null',
  '*',
  'app.example',
  'https://app.example\t',
  'x'.repeat(10_000),
])('a malformed or unlisted origin gets no CORS headers: %.60s', async (origin) => {
  const to = await agentFor('https://app.example')
  // `fetch` trims white space around a header value.
  const own = origin.trim() === 'https://app.example'
  const response = await preflight(to, origin)
  expect([response.status, corsHeaders(response.headers).length > 0]).toEqual([own ? 204 : 405, own])
  const sent = await rpc(to, 'tasks/list', {}, { headers: { origin } })
  expect([sent.status, sent.headers.get('access-control-allow-origin')]).toEqual([
    200,
    own ? origin.trim() : null,
  ])
})

test('* allows every origin, but no cookies', async () => {
  const to = await agentFor('*')
  for (const origin of ['https://anything.example', 'null']) {
    const response = await preflight(to, origin)
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    expect(response.headers.has('access-control-allow-credentials')).toBe(false)
  }
})

test('OPTIONS without the preflight headers succeeds from an allowed origin', async () => {
  const to = await agentFor('*')
  const response = await raw(to, {
    method: 'OPTIONS',
    path: '/',
    headers: { origin: 'https://app.example' },
  })
  expect([response.status, response.text]).toEqual([204, ''])
})

test('unknown paths and methods return the usual errors when CORS is enabled', async () => {
  const to = await agentFor('*')
  expect((await raw(to, { method: 'GET', path: '/nothing' })).status).toBe(404)
  expect((await raw(to, { method: 'OPTIONS', path: '/nothing' })).status).toBe(404)
  const wrong = await raw(to, { method: 'OPTIONS', path: '/' })
  expect([wrong.status, wrong.headers.get('allow'), wrong.json.error.code]).toEqual([405, 'POST', -32600])
})

test('a page can read the errors 401, 404 and 429', async () => {
  const to = await agentFor('https://app.example', { RATE_LIMIT_PER_MINUTE: '2' })
  const headers = { origin: 'https://app.example' }
  const errors = []
  for (const path of ['/nothing', '/nothing', '/nothing'])
    errors.push(await raw(to, { method: 'GET', path, headers }))
  expect(errors.map(({ status }) => status)).toEqual([404, 404, 429])
  for (const answer of errors)
    expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example')
  // Preflights are not rate limited, so that the page sees the 429 for the call itself.
  expect((await preflight(to, 'https://app.example')).status).toBe(204)
})
