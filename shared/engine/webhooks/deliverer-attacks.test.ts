import http from 'node:http'
import net, { type AddressInfo, type Socket } from 'node:net'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { refusedUrls } from '@parley/kit/net/outgoing-url.cases'
import { selfSigned } from '@parley/tools/testing/certificate'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Deliverer, type DelivererOptions } from './deliverer.ts'

const allowed = parseAllowedHosts('127.0.0.0/8')
const body = Buffer.from('{"event_id":"1","sequence":1}')
const token = 'a-secret-token'
let open: AsyncDisposableStack
beforeEach(() => {
  open = new AsyncDisposableStack()
})
afterEach(() => open.disposeAsync())

describe('receiver address', () => {
  test(`sends no request to any of the ${refusedUrls.length} URLs that must be refused`, async () => {
    const sender = deliverer({ allowed: parseAllowedHosts('') })
    const results = await Promise.all(refusedUrls.map((url) => sender.deliver({ url, body })))
    expect(refusedUrls.filter((_url, index) => results[index]?.reason !== 'refused')).toEqual([])
  })

  test("drops an event without connecting if one of the name's addresses is private", async () => {
    const receiver = open.use(await WebhookReceiver.start())
    const url = `http://hook.example:${receiver.port}/`
    for (const private_ of ['10.0.0.1', '::1', '::ffff:192.168.0.1', '169.254.169.254', 'fd00:ec2::254']) {
      const resolver = async () => ['127.0.0.1', private_]
      expect(await deliverer({ resolver }).deliver({ url, token, body })).toMatchObject({
        outcome: 'dropped',
        attempts: 1,
        reason: 'refused',
      })
    }
    expect(receiver.connections).toBe(0)
  })

  test('refuses a name that changes to a private address on the next attempt, even if a connection was kept', async () => {
    const receiver = open.use(await WebhookReceiver.start({ answer: 503 }))
    const answers = [['127.0.0.1'], ['10.0.0.1']]
    const result = await deliverer({ resolver: async () => answers.shift() ?? [] }).deliver({
      url: `http://hook.example:${receiver.port}/`,
      body,
    })
    expect(result).toEqual({
      outcome: 'dropped',
      attempts: 2,
      lastError: 'The host of the URL is not on the public internet (private)',
      reason: 'refused',
    })
    expect(receiver.posts.length).toBe(1)
  })

  test('resolves a name once per request, so that it cannot change between check and connection', async () => {
    const receiver = open.use(
      await WebhookReceiver.start({ answer: ({ attempt }) => (attempt < 3 ? 500 : 200) }),
    )
    let asked = 0
    // A second lookup for the same request would return the private address.
    const resolver = async () => (++asked > receiver.posts.length + 1 ? ['10.0.0.1'] : ['127.0.0.1'])
    const result = await deliverer({ resolver }).deliver({
      url: `http://hook.example:${receiver.port}/`,
      body,
    })
    expect([result.outcome, asked, receiver.posts.length]).toEqual(['delivered', 3, 3])
  })

  test.each([
    ['another name', ['other.example'], {}],
    ['only the address', ['127.0.0.1'], {}],
    ['an end in the past', ['hook.example'], { expired: true }],
  ])(
    'retries an event without sending any of its bytes if the TLS certificate is for %s',
    async (_title, names, made) => {
      const certificate = selfSigned(names, made)
      const receiver = open.use(await WebhookReceiver.start({ tls: certificate }))
      const result = await deliverer({ ca: certificate.cert, resolver: async () => ['127.0.0.1'] }).deliver({
        url: `https://hook.example:${receiver.port}/`,
        token,
        body,
      })
      expect(result).toEqual({
        outcome: 'dropped',
        attempts: 3,
        lastError: 'The TLS handshake with the host failed',
        reason: 'exhausted',
      })
      expect(receiver.posts).toEqual([])
    },
  )

  test("delivers over TLS with the URL's name and the checked address", async () => {
    const certificate = selfSigned(['hook.example'])
    const receiver = open.use(await WebhookReceiver.start({ tls: certificate }))
    const result = await deliverer({ ca: certificate.cert, resolver: async () => ['127.0.0.1'] }).deliver({
      url: `https://hook.example:${receiver.port}/`,
      body,
    })
    expect(result.outcome).toBe('delivered')
  })

  test('does not send a token that was not checked earlier and contains a line break', async () => {
    const receiver = open.use(await WebhookReceiver.start())
    for (const bad of ['a\r\nX-Admin: yes', 'a\nb', 'a\u0000', 'snow ☃'])
      expect(await deliverer().deliver({ url: receiver.url, token: bad, body })).toMatchObject({
        attempts: 1,
        reason: 'refused',
      })
    expect(receiver.connections).toBe(0)
  })
})

describe('response', () => {
  test.each([
    ['an answer of 1 GB', (response: http.ServerResponse) => flood(response, 1e9)],
    [
      'an answer announced with 1 GB',
      (response) => response.writeHead(200, { 'content-length': 1e9 }).write('a'),
    ],
    ['an answer that never ends', (response) => drip(response)],
    [
      'a truncated body',
      (response) => {
        response.writeHead(200, { 'content-length': 100 }).write('a')
        setTimeout(() => response.destroy(), 20)
      },
    ],
    ['a compressed body', (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('bomb')],
  ] as [string, (response: http.ServerResponse) => unknown][])(
    '%s: delivers the event by its status, discards the body and closes the connection',
    async (_title, answer) => {
      const at = await serve((request, response) => {
        request.resume()
        answer(response)
      })
      expect(await deliverer().deliver({ url: at.url, token, body })).toEqual({
        outcome: 'delivered',
        attempts: 1,
        lastStatus: 200,
      })
      expect(at.sent()).toBeLessThan(50e6)
    },
  )

  test('retries an error status with an endless body like any other error', async () => {
    const at = await serve((_request, response) => drip(response, 500))
    expect(await deliverer().deliver({ url: at.url, body })).toMatchObject({
      attempts: 3,
      lastStatus: 500,
      reason: 'exhausted',
    })
  })

  test.each([
    ['one endless header', `HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(1_000_000)}`],
    ['a flood of headers', `HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(100_000)}`],
    ['endless early hints', 'HTTP/1.1 103 Early Announcements\r\n\r\n'.repeat(10_000)],
    ['a half header', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
  ])('%s: drops the event after three limited attempts', async (_title, bytes) => {
    const at = await serveRaw((socket) => socket.write(bytes))
    const result = await deliverer().deliver({ url: at, token, body })
    expect(result).toMatchObject({ outcome: 'dropped', attempts: 3, reason: 'exhausted' })
    expect(result.lastStatus).toBeUndefined()
  })

  test('stops reading headers sent one character at a time when the timeout expires', async () => {
    const at = await serveRaw((socket) => {
      const timer = setInterval(() => socket.write('H'), 20)
      socket.once('close', () => clearInterval(timer))
    })
    expect(await deliverer().deliver({ url: at, body })).toMatchObject({ attempts: 3, reason: 'exhausted' })
  })

  test('retries if a receiver closes the connection during the request', async () => {
    const at = await serveRaw((socket) => socket.destroy())
    const large = Buffer.alloc(5_000_000, 'a')
    expect(await deliverer().deliver({ url: at, body: large })).toMatchObject({
      attempts: 3,
      reason: 'exhausted',
    })
  })
})

test('results and attempts contain no token, URL or address', async () => {
  const secret = 'http://hook.example/a-secret-path'
  const seen: unknown[] = []
  for (const addresses of [['127.0.0.1'], ['10.6.6.6'], []]) {
    const sender = deliverer({ resolver: async () => addresses })
    const onAttempt = (attempt: unknown) => seen.push(attempt)
    seen.push(await sender.deliver({ url: secret, token, body, onAttempt }))
    seen.push(await sender.deliver({ url: `${secret}\n`, token, body, onAttempt }))
    seen.push(await sender.deliver({ url: secret, token: `${token}\r\n`, body, onAttempt }))
  }
  expect(JSON.stringify(seen)).not.toMatch(/secret|127\.0\.0\.1|10\.6\.6\.6|hook\.example/)
})

function deliverer(options: DelivererOptions = {}): Deliverer {
  return open.use(new Deliverer({ allowed, wait: async () => {}, timeoutMs: 300, ...options }))
}

function flood(response: http.ServerResponse, bytes: number): void {
  const block = Buffer.alloc(64 * 1024)
  let sent = 0
  const more = () => {
    while (sent < bytes && !response.destroyed) {
      sent += block.length
      if (response.write(block)) continue
      response.once('drain', more)
      return
    }
    response.end()
  }
  more()
}

function drip(response: http.ServerResponse, status = 200): void {
  response.writeHead(status)
  const timer = setInterval(() => response.write('a'), 20)
  response.once('close', () => clearInterval(timer))
}

async function serve(answer: http.RequestListener): Promise<{ url: string; sent: () => number }> {
  const sockets: Socket[] = []
  const url = await listen(http.createServer(answer), sockets)
  return { url, sent: () => sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0) }
}

function serveRaw(answer: (socket: Socket) => unknown): Promise<string> {
  return listen(
    net.createServer((socket) => socket.once('data', () => answer(socket))),
    [],
  )
}

async function listen(server: net.Server, sockets: Socket[]): Promise<string> {
  server.on('connection', (socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  open.defer(async () => {
    const closed = new Promise((done) => server.close(done))
    for (const socket of sockets) socket.destroy()
    await closed
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
