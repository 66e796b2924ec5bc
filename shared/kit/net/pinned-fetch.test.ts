import http from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import net from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { parseAllowedHosts } from './allowed-hosts.ts'
import { OutgoingFailed, OutgoingRefused } from './outgoing-errors.ts'
import { type GuardedFetchOptions, guardedFetch } from './pinned-fetch.ts'

const loopback = parseAllowedHosts('127.0.0.0/8')
const sockets = new Set<Socket>()
let requests: { url: string; host: string | undefined; headers: http.IncomingHttpHeaders; body: string }[] =
  []
let server: http.Server | net.Server
let port = 0

beforeEach(() => {
  requests = []
})
afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  await new Promise((closed) => server.close(closed))
})

describe('request', () => {
  test('returns the status, headers, body and address of the server', async () => {
    await serve((_request, response) =>
      response.writeHead(201, { 'x-a': 'b' }).end(Buffer.from([0, 255, 128])),
    )
    const answer = await fetchAt('/hook?a=b#c', {
      method: 'POST',
      body: '{"é":1}',
      headers: { Authorization: 'Bearer x' },
    })
    expect(answer).toMatchObject({ status: 201, address: '127.0.0.1', body: Buffer.from([0, 255, 128]) })
    expect(answer.headers['x-a']).toBe('b')
    expect(requests).toMatchObject([{ url: '/hook?a=b', host: `hook.example:${port}`, body: '{"é":1}' }])
    expect(requests[0]?.headers).toMatchObject({ authorization: 'Bearer x', 'accept-encoding': 'identity' })
    expect(requests[0]?.headers['content-length']).toBe('8')
  })

  test('the connection is closed after the response', async () => {
    await serve((_request, response) => response.end('ok'))
    await fetchAt('/')
    await expect.poll(() => [...sockets].every((socket) => socket.closed)).toBe(true)
  })

  test.each([
    { 'X-A2A-Notification-Token': 'a\r\nX-Admin: yes' },
    { 'x-a': 'a\u0000' },
    { 'x-a': 'snow ☃' },
    { 'x a': 'b' },
    { 'x-a\r\nx-b': 'c' },
    { Host: 'other.example' },
    { 'Content-Length': '5' },
    { 'Transfer-Encoding': 'chunked' },
    { connection: 'upgrade' },
    { 'accept-encoding': 'gzip' },
  ])('the headers %j are rejected before anything is sent', async (headers) => {
    await serve((_request, response) => response.end())
    await expect(fetchAt('/', { headers })).rejects.toMatchObject({
      name: 'OutgoingRefused',
      reason: 'request',
    })
    expect(sockets.size).toBe(0)
  })
})

describe('destination', () => {
  test('a name with a non-public address among several is rejected without a connection', async () => {
    await serve((_request, response) => response.end())
    for (const addresses of [
      ['127.0.0.1', '10.0.0.1'],
      ['8.8.8.8', '::1'],
      ['2606:4700::1', '::ffff:10.0.0.1'],
      ['fe80::1%eth0'],
    ])
      await expect(fetchAt('/', { resolver: async () => addresses })).rejects.toMatchObject({
        name: 'OutgoingRefused',
        reason: 'not_public',
      })
    expect(sockets.size).toBe(0)
  })

  test('a loopback server is unreachable without an exception', async () => {
    await serve((_request, response) => response.end())
    const urls = [
      `http://127.0.0.1:${port}`,
      `http://2130706433:${port}`,
      `http://localhost:${port}`,
      `http://[::1]:${port}`,
    ]
    for (const url of urls) await expect(guardedFetch(url)).rejects.toBeInstanceOf(OutgoingRefused)
    await expect(
      guardedFetch(`http://hook.example:${port}`, { resolver: async () => ['127.0.0.1'] }),
    ).rejects.toBeInstanceOf(OutgoingRefused)
    expect(sockets.size).toBe(0)
  })

  test('the name is resolved only once, so an address that changes between check and connect has no effect', async () => {
    await serve((_request, response) => response.end('the checked one'))
    const answers = [['127.0.0.1'], ['127.6.6.6'], ['10.0.0.1']]
    const names: string[] = []
    const resolver = async (name: string) => {
      names.push(name)
      return answers.shift() ?? []
    }
    const answer = await fetchAt('/', { resolver })
    expect([answer.address, answer.body.toString(), names]).toEqual([
      '127.0.0.1',
      'the checked one',
      ['hook.example'],
    ])
  })

  test('a listed name is allowed with any address, and the system resolves localhost', async () => {
    await serve((_request, response) => response.end('here'))
    const allowed = parseAllowedHosts('localhost')
    const answer = await guardedFetch(`http://localhost:${port}/`, { allowed })
    expect(answer.body.toString()).toBe('here')
    await expect(guardedFetch(`http://127.0.0.1:${port}/`, { allowed })).rejects.toMatchObject({
      reason: 'not_public',
    })
  })

  test('if the first address does not respond, the next one is tried, and each one is checked', async () => {
    await serve((_request, response) => response.end('second'))
    const answer = await fetchAt('/', { resolver: async () => ['127.0.0.2', '127.0.0.1'] })
    expect(answer.address).toBe('127.0.0.1')
  })

  test('a name with more than 100 addresses is rejected, which bounds the cost of the checks', async () => {
    await serve((_request, response) => response.end())
    const addresses = ['127.0.0.1', ...Array.from({ length: 100 }, (_, i) => `8.8.8.${i}`)]
    const resolver = async () => addresses
    await expect(fetchAt('/', { resolver })).rejects.toMatchObject({
      name: 'OutgoingFailed',
      reason: 'too_large',
    })
    expect(sockets.size).toBe(0)
    addresses.pop()
    expect((await fetchAt('/', { resolver })).status).toBe(200)
    addresses.push('8.8.8.8', '8.8.4.4')
    const allowed = parseAllowedHosts('hook.example')
    expect((await fetchAt('/', { resolver, allowed })).status).toBe(200)
  })

  test.each([301, 302, 303, 307, 308])('a redirect (%i) is returned and not followed', async (status) => {
    await serve((_request, response) =>
      response.writeHead(status, { location: `http://127.0.0.1:${port}/secret` }).end(),
    )
    const answer = await fetchAt('/')
    expect([answer.status, requests.map(({ url }) => url)]).toEqual([status, ['/']])
  })

  test.each([
    ['a name without addresses', async () => []],
    ['a resolver that fails', () => Promise.reject(new Error('ENOTFOUND 10.0.0.53'))],
    ['a resolver that returns invalid addresses', async () => ['not-an-address']],
  ])('%s leads to name_not_found, which may be retried', async (_title, resolver) => {
    await serve((_request, response) => response.end())
    const failure = await fetchAt('/', { resolver }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(OutgoingFailed)
    expect(failure).toMatchObject({ reason: 'name_not_found', message: 'The host name was not found' })
  })
})

describe('response', () => {
  test('a response of 1 GB is cut at the limit, with or without Content-Length', async () => {
    let sent = 0
    await serve((request, response) => {
      if (request.url === '/announced') return response.writeHead(200, { 'content-length': 1e9 }).write('a')
      const block = Buffer.alloc(64 * 1024)
      const more = () => {
        while (sent < 1e9 && !response.destroyed) {
          sent += block.length
          if (!response.write(block)) return response.once('drain', more)
        }
        return response.end()
      }
      return more()
    })
    for (const path of ['/announced', '/'])
      await expect(fetchAt(path, { maxBytes: 100_000 })).rejects.toMatchObject({
        name: 'OutgoingFailed',
        reason: 'too_large',
      })
    expect(sent).toBeLessThan(100e6)
    await expect.poll(() => [...sockets].every((socket) => socket.closed)).toBe(true)
  })

  test('a body whose size equals the limit is accepted, but one byte more is not', async () => {
    await serve((_request, response) => response.end('12345'))
    expect((await fetchAt('/', { maxBytes: 5 })).body.toString()).toBe('12345')
    await expect(fetchAt('/', { maxBytes: 4 })).rejects.toMatchObject({ reason: 'too_large' })
  })

  test('with discardBody, a large or compressed body is cut and the status is returned', async () => {
    await serve((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(Buffer.alloc(1e6)),
    )
    const answer = await fetchAt('/', { discardBody: true, maxBytes: 1000 })
    expect([answer.status, answer.body.length]).toEqual([200, 0])
  })

  test.each(['gzip', 'br', 'deflate', 'zstd', 'gzip, identity', 'x-unknown'])(
    'a compressed response (%s) is rejected without decompression',
    async (encoding) => {
      const bomb = gzipSync(Buffer.alloc(10_000_000))
      await serve((_request, response) => response.writeHead(200, { 'content-encoding': encoding }).end(bomb))
      await expect(fetchAt('/')).rejects.toMatchObject({ name: 'OutgoingFailed', reason: 'encoding' })
    },
  )

  test.each([
    ['one endless header', `HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(1_000_000)}`, 'too_large'],
    ['too many headers', `HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(100_000)}`, 'too_large'],
    ['an endless status line', `HTTP/1.1 200 ${'a'.repeat(1_000_000)}`, 'timeout'],
    ['endless early hints', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10_000), 'timeout'],
    ['an incomplete header', 'HTTP/1.1 200 OK\r\ncontent-le', 'timeout'],
    ['no bytes', '', 'timeout'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n', 'protocol'],
    ['HTTP/2 frames', '\u0000\u0000\u0012\u0004\u0000\u0000\u0000\u0000\u0000', 'protocol'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', 'protocol'],
    [
      'Content-Length and chunked encoding',
      'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      'protocol',
    ],
    ['an invalid chunk size', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 'protocol'],
    ['a body shorter than its length', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab', 'timeout'],
    [
      'endless chunk extensions',
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;${'a'.repeat(100_000)}`,
      'timeout',
    ],
    [
      'an unrequested upgrade',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'connection',
    ],
  ])('a response with %s fails within its bounds', async (_title, bytes, reason) => {
    await serveRaw((socket) => socket.write(bytes))
    await expect(fetchAt('/', { timeoutMs: 400 })).rejects.toMatchObject({ name: 'OutgoingFailed', reason })
    await expect.poll(() => [...sockets].every((socket) => socket.closed)).toBe(true)
  })

  test('a response that trickles endlessly ends at the deadline', async () => {
    await serve((_request, response) => {
      response.writeHead(200)
      const timer = setInterval(() => response.write('a'), 20)
      response.once('close', () => clearInterval(timer))
    })
    await expect(fetchAt('/', { timeoutMs: 300 })).rejects.toMatchObject({ reason: 'timeout' })
  })

  test('a connection closed during the response fails', async () => {
    await serveRaw((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab'))
    await expect(fetchAt('/')).rejects.toMatchObject({ name: 'OutgoingFailed' })
  })
})

describe('time limits', () => {
  test('a resolver that never responds ends at the deadline', async () => {
    await serve((_request, response) => response.end())
    const never = () => new Promise<string[]>(() => {})
    await expect(fetchAt('/', { resolver: never, timeoutMs: 100 })).rejects.toMatchObject({
      reason: 'timeout',
    })
  })

  test('the caller’s signal ends the request immediately, even before it waits', async () => {
    await serve(() => {})
    await expect(fetchAt('/', { signal: AbortSignal.abort() })).rejects.toMatchObject({ reason: 'aborted' })
    const abort = new AbortController()
    const waiting = fetchAt('/', { signal: abort.signal, timeoutMs: 20_000 }).catch((error: unknown) => error)
    await expect.poll(() => requests.length).toBe(1)
    abort.abort()
    expect(await waiting).toMatchObject({ name: 'OutgoingFailed', reason: 'aborted' })
    await expect.poll(() => [...sockets].every((socket) => socket.closed)).toBe(true)
  })

  test('a closed port leads to the reason connection, without the address in the message', async () => {
    await serve(() => {})
    const url = `http://hook.example:${await freePort()}/`
    const failure = await guardedFetch(url, { allowed: loopback, resolver: async () => ['127.0.0.1'] }).catch(
      (e: unknown) => e,
    )
    expect(failure).toMatchObject({
      name: 'OutgoingFailed',
      reason: 'connection',
      message: 'The host could not be reached',
    })
  })
})

function fetchAt(path: string, options: GuardedFetchOptions = {}) {
  return guardedFetch(`http://hook.example:${port}${path}`, {
    allowed: loopback,
    resolver: async () => ['127.0.0.1'],
    ...options,
  })
}

async function serve(
  answer: (request: http.IncomingMessage, response: http.ServerResponse) => unknown,
): Promise<void> {
  await listen(
    http.createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.once('end', () => {
        const { url = '', headers } = request
        requests.push({ url, host: headers.host, headers, body: Buffer.concat(chunks).toString() })
        answer(request, response)
      })
    }),
  )
}

async function serveRaw(answer: (socket: Socket) => unknown): Promise<void> {
  await listen(net.createServer((socket) => socket.once('data', () => answer(socket))))
}

async function listen(made: http.Server | net.Server): Promise<void> {
  server = made
  sockets.clear()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  port = (server.address() as AddressInfo).port
}

async function freePort(): Promise<number> {
  const probe = net.createServer()
  await new Promise<void>((listening) => probe.listen(0, '127.0.0.1', listening))
  const free = (probe.address() as AddressInfo).port
  await new Promise((closed) => probe.close(closed))
  return free
}
