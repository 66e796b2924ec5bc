import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { parseAllowedHosts } from './allowed-hosts.ts'
import { outgoingUrl } from './outgoing-url.ts'
import { PinnedConnections } from './pinned-connections.ts'
import { type GuardedFetchOptions, guardedFetch } from './pinned-fetch.ts'

const allowed = parseAllowedHosts('127.0.0.0/8')
let server: http.Server
let port = 0
/** Every connection ever made, with the address it came to. */
let made: { socket: Socket; to: string | undefined }[] = []
let held: (() => void)[] = []

beforeEach(async () => {
  made = []
  held = []
  server = http.createServer((request, response) => {
    if (request.url === '/hold') held.push(() => response.end())
    else if (request.url === '/close') response.writeHead(200, { connection: 'close' }).end()
    else if (request.url === '/large') response.end(Buffer.alloc(100_000))
    else response.end(request.url)
  })
  server.on('connection', (socket) => made.push({ socket, to: socket.localAddress }))
  await new Promise<void>((listening) => server.listen(0, '0.0.0.0', listening))
  port = (server.address() as AddressInfo).port
})
afterEach(async () => {
  server.closeAllConnections()
  await new Promise((closed) => server.close(closed))
})

const open = () => made.filter(({ socket }) => !socket.destroyed).length

test('requests to one host that resolves as before share a connection', async () => {
  await using connections = new PinnedConnections()
  for (const path of ['/a', '/b', '/c']) expect((await ask(connections, path)).body.toString()).toBe(path)
  expect(made.length).toBe(1)
})

test('a kept connection is not used when the name resolves elsewhere now: it is closed', async () => {
  await using connections = new PinnedConnections()
  await ask(connections, '/', { resolver: async () => ['127.0.0.1'] })
  const moved = await ask(connections, '/', { resolver: async () => ['127.0.0.2'] })
  expect([moved.address, made.map(({ to }) => to)]).toEqual(['127.0.0.2', ['127.0.0.1', '127.0.0.2']])
  await expect.poll(open).toBe(1)
})

test('a kept connection does not help a name that resolves to a private address now', async () => {
  await using connections = new PinnedConnections()
  await ask(connections, '/')
  const rebound = ask(connections, '/', { resolver: async () => ['127.0.0.1', '10.0.0.1'] })
  await expect(rebound).rejects.toMatchObject({ name: 'OutgoingRefused', reason: 'not_public' })
  expect(made.length).toBe(1)
})

test('names never share a connection, though they resolve to one address', async () => {
  await using connections = new PinnedConnections()
  await ask(connections, '/', {}, 'a.example')
  await ask(connections, '/', {}, 'b.example')
  expect(made.length).toBe(2)
})

test('an answer that was cut, or ends with "connection: close", leaves no connection behind', async () => {
  await using connections = new PinnedConnections()
  await expect(ask(connections, '/large', { maxBytes: 10 })).rejects.toMatchObject({ reason: 'too_large' })
  await ask(connections, '/large', { maxBytes: 10, discardBody: true })
  await ask(connections, '/close')
  await expect.poll(open).toBe(0)
  expect((await ask(connections, '/next')).status).toBe(200)
  expect(made.length).toBe(4)
})

test('a server that closes an idle connection costs nothing: the next request opens another', async () => {
  await using connections = new PinnedConnections()
  await ask(connections, '/')
  server.closeIdleConnections()
  await expect.poll(open).toBe(0)
  // The end of it has to arrive here as well.
  await expect.poll(async () => (await ask(connections, '/').catch(() => undefined))?.status).toBe(200)
})

test('an idle connection is closed after its time', async () => {
  await using connections = new PinnedConnections({ idleMs: 50 })
  await ask(connections, '/')
  await expect.poll(open).toBe(0)
})

test('one host never has more connections than its share; the rest wait their turn, in order', async () => {
  await using connections = new PinnedConnections({ perHostMax: 2 })
  const ended: number[] = []
  const asked = [0, 1, 2, 3, 4].map((index) => ask(connections, '/hold').then(() => ended.push(index)))
  for (let answered = 0; answered < 5; answered++) {
    await expect.poll(() => held.length).toBeGreaterThan(0)
    expect(held.length).toBeLessThanOrEqual(2)
    held.shift()?.()
    await expect.poll(() => ended.length).toBe(answered + 1)
  }
  await Promise.all(asked)
  expect([made.length, ended]).toEqual([2, [0, 1, 2, 3, 4]])
})

test('a host that hangs does not hold up another', async () => {
  await using connections = new PinnedConnections({ perHostMax: 1 })
  const slow = [ask(connections, '/hold', {}, 'slow.example'), ask(connections, '/hold', {}, 'slow.example')]
  await expect.poll(() => held.length).toBe(1)
  expect((await ask(connections, '/', {}, 'quick.example')).status).toBe(200)
  held.shift()?.()
  await expect.poll(() => held.length).toBe(1)
  held.shift()?.()
  await Promise.all(slow)
})

test('in all there are never more than the total; the oldest idle one makes room', async () => {
  await using connections = new PinnedConnections({ totalMax: 2 })
  for (const name of ['a', 'b', 'c', 'd']) await ask(connections, '/', {}, `${name}.example`)
  await expect.poll(open).toBe(2)
  const holding = ['e', 'f', 'g'].map((name) => ask(connections, '/hold', {}, `${name}.example`))
  await expect.poll(() => held.length).toBe(2)
  held.shift()?.()
  await expect.poll(() => held.length).toBe(2)
  for (const answer of held.splice(0)) answer()
  await Promise.all(holding)
})

test('waiting for a connection counts against the deadline, and whoever gives up leaves the queue', async () => {
  await using connections = new PinnedConnections({ perHostMax: 1, waitingMax: 1 })
  const first = ask(connections, '/hold')
  await expect.poll(() => held.length).toBe(1)
  const late = ask(connections, '/late', { timeoutMs: 100 })
  await expect(ask(connections, '/')).rejects.toMatchObject({ name: 'OutgoingFailed', reason: 'busy' })
  await expect(late).rejects.toMatchObject({ reason: 'timeout' })
  const next = ask(connections, '/next')
  held.shift()?.()
  await first
  expect((await next).status).toBe(200)
})

test('whoever gives up at the moment of its turn passes the turn on', async () => {
  await using connections = new PinnedConnections({ perHostMax: 1 })
  const target = outgoingUrl(`http://127.0.0.1:${port}/`, allowed)
  const lease = (signal: AbortSignal) => connections.lease(target, ['127.0.0.1'], signal)
  const { signal } = new AbortController()
  const leaving = new AbortController()
  const first = await lease(signal)
  const second = lease(leaving.signal).catch((error: unknown) => error)
  const third = lease(signal)
  connections.release(first, true)
  leaving.abort(new Error('gone'))
  expect(await second).toEqual(new Error('gone'))
  expect(await third).toBe(first)
})

test('a connection that cannot be opened gives its place back', async () => {
  await using connections = new PinnedConnections({ perHostMax: 1, totalMax: 1 })
  const nobody = guardedFetch('http://hook.example:1/', {
    allowed,
    connections,
    resolver: async () => ['127.0.0.1'],
  })
  await expect(nobody).rejects.toMatchObject({ reason: 'connection' })
  expect((await ask(connections, '/')).status).toBe(200)
})

test('disposing closes what is idle and what is in use, and ends those that wait', async () => {
  const connections = new PinnedConnections({ perHostMax: 1 })
  const ended = Promise.allSettled([
    ask(connections, '/hold'),
    ask(connections, '/waits'),
    ask(connections, '/', {}, 'idle.example'),
  ])
  await expect.poll(() => [held.length, made.length]).toEqual([1, 2])
  await connections[Symbol.asyncDispose]()
  expect((await ended).map(({ status }) => status).slice(0, 2)).toEqual(['rejected', 'rejected'])
  await expect.poll(open).toBe(0)
  await expect(ask(connections, '/')).rejects.toMatchObject({ name: 'OutgoingFailed', reason: 'aborted' })
})

function ask(
  connections: PinnedConnections,
  path: string,
  options: GuardedFetchOptions = {},
  name = 'hook.example',
) {
  return guardedFetch(`http://${name}:${port}${path}`, {
    allowed,
    connections,
    resolver: async () => ['127.0.0.1'],
    ...options,
  })
}
