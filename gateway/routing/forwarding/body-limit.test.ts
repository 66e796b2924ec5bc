import { once } from 'node:events'
import http from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { createServer } from '@parley/kit/http/server'
import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { afterEach, expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { proxyAgents } from './proxy.ts'
import { acceptsAnyToken, noCards } from './testing.ts'
import { createUpstream } from './upstream.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.()
})

const server = () =>
  createServer({ log: makeLog({ level: 'silent', name: 'test' }), metrics: createMetrics() })

async function listen(app: ReturnType<typeof server>): Promise<number> {
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  open.push(
    () => app.close(),
    () => app.server.closeAllConnections(),
  )
  return Number(new URL(url).port)
}

/** Returns the port of a gateway in front of an agent that accepts bodies up to 10 MiB or `agentMaxBytes`. */
async function gateway(agentMaxBytes?: number): Promise<number> {
  const agent = createServer({
    log: makeLog({ level: 'silent', name: 'test' }),
    metrics: createMetrics(),
    ...(agentMaxBytes !== undefined && { bodyMaxBytes: agentMaxBytes }),
  })
  agent.post('/', async (request) => (request.body as Buffer).byteLength)
  return gatewayBefore(await listen(agent))
}

async function gatewayBefore(agentPort: number): Promise<number> {
  const entry = { slug: 'calc', status: 'ready', origin: 'supervised', admitted: true } as AgentEntry
  entry.url = `http://127.0.0.1:${agentPort}`
  const upstream = createUpstream()
  open.push(() => upstream.destroy())
  const app = server()
  app.post('/', async (request) => (request.body as Buffer).byteLength)
  await proxyAgents(app, {
    find: () => ({ entry }),
    dispatcherFor: () => upstream,
    tokens: acceptsAnyToken,
    cardOut: noCards,
  })
  return listen(app)
}

const megabyte = Buffer.alloc(1024 * 1024, 'x')
const head = (path: string, more: string) =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${more}\r\n`

/** Sends the whole body before reading, as many clients do. */
async function sendThenRead(
  port: number,
  path: string,
  { chunked, close }: { chunked: boolean; close: boolean },
) {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.pause()
  socket.on('error', () => {})
  const closed = close ? 'Connection: close\r\n' : ''
  const length = chunked
    ? 'Transfer-Encoding: chunked\r\n'
    : `Content-Length: ${24 * megabyte.byteLength}\r\n`
  const write = (bytes: string | Buffer) =>
    new Promise<void>((resolve, reject) =>
      socket.write(bytes, (error) => (error == null ? resolve() : reject(error))),
    )
  await write(head(path, length + closed))
  for (let sent = 0; sent < 24; sent += 1) {
    if (chunked) await write('100000\r\n')
    await write(megabyte)
    if (chunked) await write('\r\n')
  }
  if (chunked) await write('0\r\n\r\n')
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.resume()
  while (!Buffer.concat(chunks).toString().includes('}}')) await once(socket, 'data')
  socket.destroy()
  return Buffer.concat(chunks).toString()
}

test.each(
  ['/agents/calc/', '/'].flatMap((path) =>
    [true, false].flatMap((chunked) => [true, false].map((close) => [path, { chunked, close }] as const)),
  ),
)(
  'POST %s, %j: a client that sends a body over the limit before reading receives the 413',
  async (path, how) => {
    const answer = await sendThenRead(await gateway(), path, how)
    expect(answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*"code":-32600/)
  },
)

test("a client that is still sending to an agent through the gateway receives the agent's 413", async () => {
  const answer = await sendThenRead(await gateway(1000), '/agents/calc/', { chunked: true, close: true })
  expect(answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*"code":-32600/)
})

test('a client that sends an endless body receives 413, then its connection is closed', async () => {
  const request = http.request({
    port: await gateway(),
    host: '127.0.0.1',
    path: '/agents/calc/',
    method: 'POST',
  })
  request.on('error', () => {})
  // `once` would reject when a write fails after the gateway has closed the connection.
  const closed = new Promise<void>((resolve) => void request.once('close', resolve))
  const [response] = await Promise.all([
    once(request, 'response').then(async ([answer]) => {
      const { statusCode } = answer as http.IncomingMessage
      await text(answer as http.IncomingMessage).catch(() => '')
      return statusCode
    }),
    (async () => {
      while (!request.destroyed) {
        request.write(megabyte)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })(),
  ])
  await closed
  expect(response).toBe(413)
})

test('an agent that responds before the body ends still receives the rest of the body', async () => {
  const agent = http.createServer((request, response) => {
    response.writeHead(200).write('begun ')
    let bytes = 0
    request.on('data', (chunk: Buffer) => (bytes += chunk.byteLength))
    request.on('end', () => response.end(String(bytes)))
    request.on('error', () => {})
  })
  agent.listen(0, '127.0.0.1')
  await once(agent, 'listening')
  open.push(
    () => agent.close(),
    () => agent.closeAllConnections(),
  )
  const port = await gatewayBefore((agent.address() as AddressInfo).port)
  const request = http.request({ port, host: '127.0.0.1', path: '/agents/calc/', method: 'POST' })
  request.write(megabyte)
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  request.end(megabyte)
  expect(await text(response)).toBe(`begun ${2 * megabyte.byteLength}`)
})

test('requests rejected before their bodies arrived leave no bytes on a keep-alive connection', async () => {
  const app = server()
  const opened = once(app.server, 'connection')
  const client = connect({ port: await listen(app), host: '127.0.0.1' })
  open.push(() => client.destroy())
  const [socket] = (await opened) as [Socket]
  const listeners = () =>
    socket.eventNames().reduce((sum, name) => sum + socket.listenerCount(name as string), 0)
  const refused = async () => {
    client.write(head('/', 'Content-Length: 4\r\nAuthorization: a\r\nAuthorization: b\r\n'))
    const [answer] = (await once(client, 'data')) as [Buffer]
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 400 /)
    client.write('body')
  }
  await refused()
  await refused()
  const before = listeners()
  for (let request = 0; request < 5; request += 1) await refused()
  expect(listeners()).toBe(before)
})
