import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { selfSigned } from '@parley/tools/testing/certificate'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectionFault } from './connection-fault.ts'

const plain = http.createServer((_, response) => response.end())
const secure = https.createServer(selfSigned(['127.0.0.1']), (_, response) => response.end())
const expired = https.createServer(selfSigned(['127.0.0.1'], { expired: true }))
const other = https.createServer(selfSigned(['other.example']))
const servers = [plain, secure, expired, other]
const portOf = (server: http.Server) => (server.address() as AddressInfo).port

beforeAll(() =>
  Promise.all(
    servers.map((server) => new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()))),
  ),
)
afterAll(() => Promise.all(servers.map((server) => new Promise((done) => server.close(done)))))

test.each([
  ['an https address of a server without TLS', 'https', plain, /does not use TLS.*http:\/\//],
  ['an http address of a server with TLS', 'http', secure, /closed the connection.*https:\/\//],
  ['a certificate of an unknown issuer', 'https', secure, /certificate is not trusted.*NODE_EXTRA_CA_CERTS/],
] as const)('%s is explained in a sentence', async (_, scheme, server, sentence) => {
  const url = `${scheme}://127.0.0.1:${portOf(server)}/`
  const thrown = await fetch(url).catch((error: unknown) => error)
  expect(connectionFault(thrown, url)).toMatch(sentence)
})

test('a closed port and a name that does not resolve are described', async () => {
  const server = http.createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', () => done()))
  const url = `http://127.0.0.1:${portOf(server)}/`
  await new Promise((done) => server.close(done))
  const thrown = await fetch(url).catch((error: unknown) => error)
  expect(connectionFault(thrown, url)).toBe('nothing is listening at this address')
  expect(connectionFault(Object.assign(new Error('x'), { code: 'ENOTFOUND' }), 'http://x/')).toBe(
    'the name does not resolve',
  )
})

test('other errors are not described', () => {
  expect(connectionFault(new TypeError('oops'), 'http://x/')).toBeUndefined()
  expect(connectionFault(new DOMException('slow', 'TimeoutError'), 'http://x/')).toBeUndefined()
})
