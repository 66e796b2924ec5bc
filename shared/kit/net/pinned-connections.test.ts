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
/** All connections opened, with their remote address. */
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

test('requests to a host whose address has not changed share a connection', async () => {
  await using connections = new PinnedConnections()
  for (const path of ['/a', '/b', '/c']) expect((await get(connections, path)).body.toString()).toBe(path)
  expect(made.length).toBe(1)
})

test('an idle connection is closed if the name now resolves to another address', async () => {
  await using connections = new PinnedConnections()
  await get(connections, '/', { resolver: async () => ['127.0.0.1'] })
  const moved = await get(connections, '/', { resolver: async () => ['127.0.0.2'] })
  expect([moved.address, made.map(({ to }) => to)]).toEqual(['127.0.0.2', ['127.0.0.1', '127.0.0.2']])
  await expect.poll(open).toBe(1)
})

test('an idle connection is not used if the name now resolves to a private address', async () => {
  await using connections = new PinnedConnections()
  await get(connections, '/')
  const rebound = get(connections, '/', { resolver: async () => ['127.0.0.1', '10.0.0.1'] })
  await expect(rebound).rejects.toMatchObject({ name: 'OutgoingRefused', reason: 'not_public' })
  expect(made.length).toBe(1)
})

test('different names with the same address never share a connection', async () => {
  await using connections = new PinnedConnections()
  await get(connections, '/', {}, 'a.example')
  await get(connections, '/', {}, 'b.example')
  expect(made.length).toBe(2)
})

test('a truncated response, or one with "connection: close", leaves no connection open', async () => {
  await using connections = new PinnedConnections()
  await expect(get(connections, '/large', { maxBytes: 10 })).rejects.toMatchObject({ reason: 'too_large' })
  await get(connections, '/large', { maxBytes: 10, discardBody: true })
  await get(connections, '/close')
  await expect.poll(open).toBe(0)
  expect((await get(connections, '/next')).status).toBe(200)
  expect(made.length).toBe(4)
})

test('after the server has closed an idle connection, the next request opens another', async () => {
  await using connections = new PinnedConnections()
  await get(connections, '/')
  server.closeIdleConnections()
  await expect.poll(open).toBe(0)
  // The close has to arrive first.
  await expect.poll(async () => (await get(connections, '/').catch(() => undefined))?.status).toBe(200)
})

test('an idle connection is closed after idleMs', async () => {
  await using connections = new PinnedConnections({ idleMs: 50 })
  await get(connections, '/')
  await expect.poll(open).toBe(0)
})

test('a host never has more than perHostMax connections, and additional requests wait in order', async () => {
  await using connections = new PinnedConnections({ perHostMax: 2 })
  const ended: number[] = []
  const requests = [0, 1, 2, 3, 4].map((index) => get(connections, '/hold').then(() => ended.push(index)))
  for (let completed = 0; completed < 5; completed++) {
    await expect.poll(() => held.length).toBeGreaterThan(0)
    expect(held.length).toBeLessThanOrEqual(2)
    held.shift()?.()
    await expect.poll(() => ended.length).toBe(completed + 1)
  }
  await Promise.all(requests)
  expect([made.length, ended]).toEqual([2, [0, 1, 2, 3, 4]])
})

test('an unresponsive host does not delay other hosts', async () => {
  await using connections = new PinnedConnections({ perHostMax: 1 })
  const slow = [get(connections, '/hold', {}, 'slow.example'), get(connections, '/hold', {}, 'slow.example')]
  await expect.poll(() => held.length).toBe(1)
  expect((await get(connections, '/', {}, 'quick.example')).status).toBe(200)
  held.shift()?.()
  await expect.poll(() => held.length).toBe(1)
  held.shift()?.()
  await Promise.all(slow)
})

test('there are never more than totalMax connections, and at the limit the oldest idle one is closed', async () => {
  await using connections = new PinnedConnections({ totalMax: 2 })
  for (const name of ['a', 'b', 'c', 'd']) await get(connections, '/', {}, `${name}.example`)
  await expect.poll(open).toBe(2)
  const holding = ['e', 'f', 'g'].map((name) => get(connections, '/hold', {}, `${name}.example`))
  await expect.poll(() => held.length).toBe(2)
  held.shift()?.()
  await expect.poll(() => held.length).toBe(2)
  for (const answer of held.splice(0)) answer()
  await Promise.all(holding)
})

test('waiting for a connection counts against the deadline, and an aborted request leaves the queue', async () => {
  await using connections = new PinnedConnections({ perHostMax: 1, waitingMax: 1 })
  const first = get(connections, '/hold')
  await expect.poll(() => held.length).toBe(1)
  const late = get(connections, '/late', { timeoutMs: 100 })
  await expect(get(connections, '/')).rejects.toMatchObject({ name: 'OutgoingFailed', reason: 'busy' })
  await expect(late).rejects.toMatchObject({ reason: 'timeout' })
  const next = get(connections, '/next')
  held.shift()?.()
  await first
  expect((await next).status).toBe(200)
})

test('a request that is aborted when its turn comes passes the turn on', async () => {
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

test('a request that needs a connection in use recently opens another', async () => {
  await using connections = new PinnedConnections()
  const target = outgoingUrl(`http://127.0.0.1:${port}/`, allowed)
  const signal = AbortSignal.timeout(10_000)
  const lease = (idleMaxMs?: number) => connections.lease(target, ['127.0.0.1'], signal, idleMaxMs)
  const first = await lease()
  connections.release(first, true)
  expect(await lease(60_000)).toBe(first)
  connections.release(first, true)
  await new Promise((resolve) => setTimeout(resolve, 5))
  expect(connections.takeIdle(target, ['127.0.0.1'], 0)).toBeUndefined()
  expect(first.socket.destroyed).toBe(true)
  expect(await lease(0)).not.toBe(first)
})

test('a connection that cannot be opened frees its slot', async () => {
  await using connections = new PinnedConnections({ perHostMax: 1, totalMax: 1 })
  const nobody = guardedFetch('http://hook.example:1/', {
    allowed,
    connections,
    resolver: async () => ['127.0.0.1'],
  })
  await expect(nobody).rejects.toMatchObject({ reason: 'connection' })
  expect((await get(connections, '/')).status).toBe(200)
})

test('disposal closes idle and used connections, and ends waiting requests', async () => {
  const connections = new PinnedConnections({ perHostMax: 1 })
  const ended = Promise.allSettled([
    get(connections, '/hold'),
    get(connections, '/waits'),
    get(connections, '/', {}, 'idle.example'),
  ])
  await expect.poll(() => [held.length, made.length]).toEqual([1, 2])
  await connections[Symbol.asyncDispose]()
  expect((await ended).map(({ status }) => status).slice(0, 2)).toEqual(['rejected', 'rejected'])
  await expect.poll(open).toBe(0)
  await expect(get(connections, '/')).rejects.toMatchObject({ name: 'OutgoingFailed', reason: 'aborted' })
})

function get(
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
