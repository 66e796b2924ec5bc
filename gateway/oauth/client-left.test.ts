import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { basic, startIdentityProvider, type TestIdentityProvider, temporaryFolder } from './testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider(folder)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

interface Line {
  level: number
  msg: string
}

test.each([
  ['/oauth2/introspect', 'client disconnected before its request was complete'],
  ['/oauth2/token', 'a client of the OAuth server disconnected'],
])('a client that disconnects during a POST %s causes no server error', async (path, message) => {
  const checker = { clientId: 'checker', clientName: 'Checker', scope: 'agent:read', introspection: true }
  const credentials = await server.provider.ensureClient(checker)
  const before = server.logged().length
  const socket = connect(Number(new URL(server.origin).port), '127.0.0.1')
  await once(socket, 'connect')
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: a',
    `Authorization: ${basic(credentials)}`,
    'Content-Type: application/x-www-form-urlencoded',
    'Content-Length: 100',
    'Expect: 100-continue',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\ntoken=abc`)
  // The server sends 100 Continue once it has received the headers.
  await once(socket, 'data')
  socket.resetAndDestroy()
  const lines = () =>
    server
      .logged()
      .slice(before)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line)
  await vi.waitFor(() => expect(lines().map(({ msg }) => msg)).toContain(message), { timeout: 100_000 })
  expect(lines().filter(({ level }) => level >= 40)).toEqual([])
})
