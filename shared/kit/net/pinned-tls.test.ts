import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import { selfSigned } from '@parley/tools/testing/certificate'
import { afterEach, expect, test } from 'vitest'
import { parseAllowedHosts } from './allowed-hosts.ts'
import { type GuardedFetchOptions, guardedFetch } from './pinned-fetch.ts'

const allowed = parseAllowedHosts('127.0.0.0/8')
let server: net.Server
/** What clients asked for by SNI, in order. */
let servernames: unknown[] = []
let asked = 0

afterEach(async () => {
  delete process.env['NODE_TLS_REJECT_UNAUTHORIZED']
  await new Promise((closed) => server.close(closed))
})

test('TLS asks for the name of the URL and verifies it, on the address that was checked', async () => {
  const port = await serve(selfSigned(['hook.example']))
  const answer = await fetchAt(`https://hook.example.:${port}/`)
  expect([answer.body.toString(), answer.address, servernames]).toEqual([
    `hook.example:${port}`,
    '127.0.0.1',
    ['hook.example'],
  ])
})

test('an address in the URL is verified as an address, and not sent as a name', async () => {
  const port = await serve(selfSigned(['127.0.0.1']))
  const answer = await fetchAt(`https://127.0.0.1:${port}/`)
  expect([answer.status, servernames]).toEqual([200, [false]])
})

test.each([
  ['another name', 'hook.example', selfSigned(['other.example'])],
  ['a name below it', 'hook.example', selfSigned(['a.hook.example'])],
  ['only the address it resolves to', 'hook.example', selfSigned(['127.0.0.1'])],
  ['only a name, and the URL holds an address', '127.0.0.1', selfSigned(['hook.example'])],
  ['an end in the past', 'hook.example', selfSigned(['hook.example'], { expired: true })],
])('a certificate with %s is refused and nothing is sent', async (_title, host, certificate) => {
  const port = await serve(certificate)
  await expect(fetchAt(`https://${host}:${port}/`)).rejects.toMatchObject({
    name: 'OutgoingFailed',
    reason: 'tls',
  })
  expect(asked).toBe(0)
})

test('a certificate that nobody vouches for is refused, even where the environment turns verification off', async () => {
  const port = await serve(selfSigned(['hook.example']))
  process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
  for (const ca of [undefined, selfSigned(['hook.example']).cert])
    await expect(
      fetchAt(`https://hook.example:${port}/`, ca === undefined ? {} : { ca }),
    ).rejects.toMatchObject({ reason: 'tls' })
  expect(asked).toBe(0)
})

test('a TLS server that is asked without TLS fails', async () => {
  const port = await serve(selfSigned(['hook.example']))
  await expect(fetchAt(`http://hook.example:${port}/`)).rejects.toMatchObject({ name: 'OutgoingFailed' })
})

test('a server without TLS that is asked for it fails', async () => {
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
  asked = 0
  const made = https.createServer(certificate, (request, response) => {
    asked++
    response.end(request.headers.host)
  })
  server = made
  made.on('secureConnection', (socket) => servernames.push(socket.servername))
  made.on('tlsClientError', () => {})
  await new Promise<void>((listening) => made.listen(0, '127.0.0.1', listening))
  return (made.address() as AddressInfo).port
}
