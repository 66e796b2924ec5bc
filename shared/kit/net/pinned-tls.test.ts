import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import { selfSigned } from '@parley/tools/testing/certificate'
import { afterEach, expect, test } from 'vitest'
import { parseAllowedHosts } from './allowed-hosts.ts'
import { type GuardedFetchOptions, guardedFetch } from './pinned-fetch.ts'

const allowed = parseAllowedHosts('127.0.0.0/8')
let server: net.Server
/** Server names (SNI) sent by clients, in order. */
let servernames: unknown[] = []
let requests = 0

afterEach(async () => {
  delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  await new Promise((closed) => server.close(closed))
})

test('TLS to the checked address sends the URL’s host name and verifies the certificate against it', async () => {
  const port = await serve(selfSigned(['hook.example']))
  const answer = await fetchAt(`https://hook.example.:${port}/`)
  expect([answer.body.toString(), answer.address, servernames]).toEqual([
    `hook.example:${port}`,
    '127.0.0.1',
    ['hook.example'],
  ])
})

test('an address in the URL is verified as an address and not sent as a server name', async () => {
  const port = await serve(selfSigned(['127.0.0.1']))
  const answer = await fetchAt(`https://127.0.0.1:${port}/`)
  expect([answer.status, servernames]).toEqual([200, [false]])
})

test.each([
  ['another name', 'hook.example', selfSigned(['other.example'])],
  ['a subdomain only', 'hook.example', selfSigned(['a.hook.example'])],
  ['only the address it resolves to', 'hook.example', selfSigned(['127.0.0.1'])],
  ['only a name, and the URL holds an address', '127.0.0.1', selfSigned(['hook.example'])],
  ['an expiry in the past', 'hook.example', selfSigned(['hook.example'], { expired: true })],
])('a certificate with %s is rejected and nothing is sent', async (_title, host, certificate) => {
  const port = await serve(certificate)
  await expect(fetchAt(`https://${host}:${port}/`)).rejects.toMatchObject({
    name: 'OutgoingFailed',
    reason: 'tls',
  })
  expect(requests).toBe(0)
})

test('an untrusted certificate is rejected even if the environment disables verification', async () => {
  const port = await serve(selfSigned(['hook.example']))
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  for (const ca of [undefined, selfSigned(['hook.example']).cert])
    await expect(
      fetchAt(`https://hook.example:${port}/`, ca === undefined ? {} : { ca }),
    ).rejects.toMatchObject({ reason: 'tls' })
  expect(requests).toBe(0)
})

test('an http request to a TLS server fails', async () => {
  const port = await serve(selfSigned(['hook.example']))
  await expect(fetchAt(`http://hook.example:${port}/`)).rejects.toMatchObject({ name: 'OutgoingFailed' })
})

test('an https request to a server without TLS fails', async () => {
  const plain = net.createServer((socket) => void socket.resume().end('HTTP/1.1 200 OK\r\n\r\n'))
  server = plain
  await new Promise<void>((listening) => plain.listen(0, '127.0.0.1', listening))
  const { port } = plain.address() as AddressInfo
  await expect(fetchAt(`https://hook.example:${port}/`)).rejects.toMatchObject({ reason: 'tls' })
})

let trusted = ''

function fetchAt(url: string, options: GuardedFetchOptions = { ca: trusted }) {
  return guardedFetch(url, { allowed, resolver: async () => ['127.0.0.1'], ...options })
}

async function serve(certificate: { cert: string; key: string }): Promise<number> {
  trusted = certificate.cert
  servernames = []
  requests = 0
  const made = https.createServer(certificate, (request, response) => {
    requests++
    response.end(request.headers.host)
  })
  server = made
  made.on('secureConnection', (socket) => servernames.push(socket.servername))
  made.on('tlsClientError', () => {})
  await new Promise<void>((listening) => made.listen(0, '127.0.0.1', listening))
  return (made.address() as AddressInfo).port
}
