import { type TestAgent, testAgent } from '@parley/agent/testing'
import { bareSocket, raw, rpc } from '@parley/tools/testing/raw-http'
import { methods } from '@parley/wire/codecs/parley/methods'
import { afterAll, beforeAll, expect, test } from 'vitest'

let agent: TestAgent
let token: string
beforeAll(async () => {
  agent = await testAgent({ handle: ({ text }) => text })
  token = agent.caller('alice').token
})
afterAll(() => agent[Symbol.asyncDispose]())

const envelope = (code: number, reason?: string) => ({
  jsonrpc: '2.0',
  id: null,
  error: { code, message: expect.any(String), data: reason === undefined ? expect.any(Object) : { reason } },
})
const listBody = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} })

test.each([
  'application/json',
  'application/json; charset=utf-8',
  'Application/JSON;charset=UTF-8',
  'application/vnd.api+json',
])('content type %s is accepted as JSON', async (type) => {
  expect((await raw(agent, { token, headers: { 'content-type': type }, body: listBody })).status).toBe(200)
})

test('a body without a content type is accepted as JSON', async () => {
  expect((await raw(agent, { token, body: listBody })).status).toBe(200)
})

test.each([
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/jsonx',
  'garbage',
  'application/xml; x=application/json',
])('content type %s receives 415 with the envelope and -32600', async (type) => {
  for (const path of ['/', '/tasks/list', '/agent/negotiation']) {
    const answer = await raw(agent, { path, token, headers: { 'content-type': type }, body: listBody })
    expect([path, answer.status, answer.json]).toEqual([path, 415, envelope(-32600)])
  }
})

test.each([
  ['GET', '/', 'POST'],
  ['PUT', '/', 'POST'],
  ['DELETE', '/', 'POST'],
  ['OPTIONS', '/', 'POST'],
  ['PATCH', '/message/send', 'POST'],
  ['GET', '/message/stream?task_id=1', 'POST'],
  ['PUT', '/tasks/get?task_id=1', 'GET, POST'],
  ['POST', '/tasks', 'GET'],
  ['GET', '/agent/negotiation', 'POST'],
  ['POST', '/health', 'GET, HEAD'],
  ['DELETE', '/metrics', 'GET, HEAD'],
  ['POST', '/.well-known/agent.json', 'GET, HEAD'],
  ['POST', '/agent/skills', 'GET, HEAD'],
  ['PUT', '/agent/skills/test', 'GET, HEAD'],
])('the wrong HTTP method %s %s receives 405 with Allow', async (method, path, allow) => {
  const answer = await raw(agent, { method, path })
  expect([answer.status, answer.json]).toEqual([405, envelope(-32600)])
  expect(answer.headers.get('allow')?.split(', ').sort().join(', ')).toBe(allow)
})

test.each([
  ['GET', '/docs'],
  ['GET', '/docs/'],
  ['POST', '/docs'],
  ['GET', '/openapi.yaml'],
  ['GET', '/nothing'],
  ['POST', '/contexts'],
  ['POST', '/tasks/get/'],
  ['POST', '/message/send/extra'],
  ['GET', '/agent/skills/'],
  ['GET', '//'],
])('the unknown path %s %s receives 404 with -32040, or -32030 for a skill', async (method, path) => {
  const answer = await raw(agent, { method, path, token })
  expect(answer.status).toBe(404)
  expect([-32040, -32030]).toContain(answer.json.error.code)
  expect(answer.json).toEqual(envelope(answer.json.error.code))
})

test.each([
  ['http://agent.example/health', 200],
  ['HTTPS://agent.example:7401/health?x=1', 200],
  ['http://agent.example', 405],
  ['http://agent.example?x=/health', 405],
  ['http://agent.example/docs', 404],
  ['ftp://agent.example/health', 404],
  ['*', 404],
])('the request target %s in absolute form receives %i', async (address, status) => {
  const answer = await bareSocket(
    agent.url,
    `GET ${address} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
  )
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
})

test('a path that is too long receives 400 with the envelope', async () => {
  const answer = await raw(agent, { method: 'GET', path: `/agent/skills/${'x'.repeat(1000)}` })
  expect([answer.status, answer.json]).toEqual([400, envelope(-32600)])
})

test.each(['/%', '/%zz', '/%c0%af', '/agent/skills/%ff'])(
  'a path that cannot be decoded, %s: 400 with the envelope',
  async (path) => {
    const answer = await raw(agent, { method: 'GET', path })
    expect([answer.status, answer.json]).toEqual([400, envelope(-32600)])
  },
)

test.each([...methods.keys()])('POST /%s takes the same body as POST /', async (method) => {
  const central = await rpc(agent, method, {}, { token })
  const alias = await rpc(agent, method, {}, { token, path: `/${method}` })
  expect([alias.status, alias.json]).toEqual([central.status, central.json])
})

test('a body whose method differs from the path receives -32600', async () => {
  const answer = await rpc(agent, 'tasks/list', {}, { token, path: '/tasks/get' })
  expect([answer.status, answer.json]).toMatchObject([400, { id: 'r-1', error: { code: -32600 } }])
})

test('a token in the query string is ignored', async () => {
  const answer = await rpc(agent, 'tasks/list', {}, { token: undefined, path: `/?access_token=${token}` })
  expect(answer.json.error.code).toBe(-32009)
})

test.each([
  ['X-Request-Id', { 'x-request-id': 'abc-123' }, 'abc-123'],
  [
    'traceparent',
    { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' },
    '4bf92f3577b34da6a3ce929d0e0e4736',
  ],
  [
    'X-Request-Id, which takes precedence over traceparent',
    { 'x-request-id': 'mine', traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` },
    'mine',
  ],
] as [string, Record<string, string>, string][])(
  'the request id of %s is returned',
  async (_name, headers, expected) => {
    for (const path of ['/health', '/nothing']) {
      expect((await raw(agent, { method: 'GET', path, headers })).headers.get('x-request-id')).toBe(expected)
    }
  },
)

test.each([
  ['too long', { 'x-request-id': 'x'.repeat(129) }],
  ['empty', { 'x-request-id': '' }],
  ['markup', { 'x-request-id': '<script>' }],
  ['JSON', { 'x-request-id': '{"a":1}' }],
  ['other letters', { 'x-request-id': 'é' }],
  ['a short trace', { traceparent: '00-abc-def-01' }],
  ['a trace of zeros', { traceparent: `00-${'0'.repeat(32)}-${'b'.repeat(16)}-01` }],
] as [string, Record<string, string>][])('a hostile request id (%s) is replaced', async (_name, headers) => {
  const { headers: returned } = await raw(agent, { method: 'GET', path: '/health', headers })
  expect(returned.get('x-request-id')).toMatch(/^[\da-f]{8}-[\da-f-]{27}$/)
})

test.each([
  ['bytes that are not HTTP', 'hello\r\n\r\n', '400'],
  ['a header with a line break in its name', 'GET /health HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n', '400'],
  ['64 KiB of headers', `GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(65_536)}\r\n\r\n`, '431'],
  ['two lengths', 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}', '400'],
  [
    'Content-Length and chunked encoding',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    '400',
  ],
])('%s leads to an error envelope, and the next request succeeds', async (_name, bytes, status) => {
  const answer = await bareSocket(agent.url, bytes)
  expect(answer.split(' ')[1]).toBe(status)
  expect(JSON.parse(answer.slice(answer.indexOf('{')))).toEqual(envelope(-32600))
  expect((await raw(agent, { method: 'GET', path: '/health' })).status).toBe(200)
})

test('a body that ends early does not affect other requests', async () => {
  await bareSocket(
    agent.url,
    'POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}',
  )
  expect((await raw(agent, { method: 'GET', path: '/health' })).status).toBe(200)
})

test.each(['the same token', 'another first', 'another after it'])(
  'Authorization twice on the wire, %s: 400 -32600, because a proxy may have used the other value',
  async (which) => {
    const tokens =
      which === 'another first' ? ['x', token] : [token, which === 'the same token' ? token : 'x']
    const lines = tokens.map((one, i) => `${i === 0 ? 'Authorization' : 'authorization'}: Bearer ${one}\r\n`)
    const head = `POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${listBody.length}\r\n`
    const answer = await bareSocket(agent.url, `${head}${lines.join('')}\r\n${listBody}`)
    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer.toLowerCase()).toContain('www-authenticate: bearer error="invalid_request"')
    expect(answer).toContain('"code":-32600')
    expect(answer).toContain('"reason":"authorization"')
  },
)
