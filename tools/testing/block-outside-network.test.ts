import dns from 'node:dns'
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const blocked = { message: expect.stringContaining('The outside network is blocked in tests') }

// Addresses for documentation (RFC 5737, RFC 3849) and a reserved name, none of which ever responds.
test.each([
  ['net.connect, by port and address', () => once(net.connect(80, '192.0.2.1'), 'connect')],
  ['net.connect, by options', () => once(net.connect({ port: 80, host: '2001:db8::1' }), 'connect')],
  ['an existing socket', () => once(new net.Socket().connect(80, '192.0.2.1'), 'connect')],
  ['a name', () => once(net.connect(80, 'outside.example'), 'connect')],
  ['http', () => once(http.get('http://192.0.2.1/'), 'response')],
  ['a look-up', () => lookup('outside.example')],
  ['a DNS query', () => dns.promises.resolve4('outside.example')],
  ['a DNS query with a resolver', () => new dns.promises.Resolver().resolve6('outside.example')],
  [
    'a DNS query with a callback',
    () => promisify((done) => new dns.Resolver().resolve4('outside.example', done))(),
  ],
])('blocks %s', async (_way, leave) => {
  await expect(leave()).rejects.toMatchObject(blocked)
})

test('blocks fetch', async () => {
  await expect(fetch('http://outside.example/')).rejects.toMatchObject({ cause: blocked })
})

test('allows connections on this machine', async () => {
  const server = http.createServer((_request, response) => response.end('here')).listen(0)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (const host of ['127.0.0.1', 'localhost']) {
    expect(await (await fetch(`http://${host}:${port}/`)).text()).toBe('here')
  }
  server.close()
})
