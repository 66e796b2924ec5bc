import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer, type ServerOptions } from '@parley/kit/http/server'
import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { bareSocket } from '@parley/tools/testing/raw-http'
import { afterEach, expect, test } from 'vitest'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.()
})

async function server(options: Partial<ServerOptions>) {
  const app = createServer({
    log: makeLog({ level: 'silent', name: 'test' }),
    metrics: createMetrics(),
    timeoutsCheckMs: 20,
    ...options,
  })
  app.post('/', async (request) => `${(request.body as Buffer).byteLength}`)
  app.get('/ok', async () => 'ok')
  app.get('/never', () => new Promise(() => {}))
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  open.push(() => {
    app.server.closeAllConnections()
    return app.close()
  })
  return { url, port: Number(new URL(url).port) }
}

test.each([
  ['says nothing', ''],
  ['never ends its head', 'POST / HTTP/1.1\r\nHost: a\r\nX-More: '],
])('a connection that %s is closed after the header timeout', async (_name, bytes) => {
  const { url } = await server({ headersTimeoutMs: 100 })
  expect(await bareSocket(url, bytes)).toMatch(/^(HTTP\/1.1 408 [\s\S]*-32600[\s\S]*)?$/)
})

test('a request without its body receives 408 after the request timeout', async () => {
  const { url } = await server({ requestTimeoutMs: 150 })
  const answer = await bareSocket(url, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc')
  expect(answer).toMatch(/^HTTP\/1.1 408 [\s\S]*-32600/)
})

test('a body sent byte by byte receives 408, because a byte does not restart the timeout', async () => {
  const { port } = await server({ requestTimeoutMs: 200 })
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  const closed = once(socket, 'close')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n')
  const dripping = setInterval(() => socket.write('a'), 20)
  open.push(() => clearInterval(dripping))
  await closed
  expect(Buffer.concat(chunks).toString()).toMatch(/^HTTP\/1.1 408 /)
})

test('the server closes an idle connection', async () => {
  const { url } = await server({ idleTimeoutMs: 100 })
  expect(await bareSocket(url, 'GET /never HTTP/1.1\r\nHost: a\r\n\r\n')).toBe('')
})

test('connections beyond the limit are closed immediately; a closed connection makes room for another', async () => {
  const { url, port } = await server({ connectionsMax: 2 })
  const held: Socket[] = []
  for (let number = 0; number < 2; number += 1) {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    held.push(socket)
  }
  open.push(() => held.forEach((socket) => socket.destroy()))
  const request = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc'
  expect(await bareSocket(url, request)).toBe('')
  held.pop()?.destroy()
  let answer = ''
  while (answer === '') {
    await delay(10)
    answer = await bareSocket(url, request)
  }
  expect(answer).toMatch(/^HTTP\/1.1 200 /)
})

test.each([
  ['HTTP/0.9 without a version', 'GET /ok\r\n\r\n'],
  ['HTTP/0.9 without a version, with a header', 'GET /ok\r\nHost: a\r\n\r\n'],
  ['HTTP/0.9', 'GET /ok HTTP/0.9\r\nHost: a\r\n\r\n'],
  ['HTTP/2.0 in the form of HTTP/1', 'GET /ok HTTP/2.0\r\nHost: a\r\n\r\n'],
  ['two Host headers', 'GET /ok HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
  ['the same Host twice', 'GET /ok HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n'],
  ['two Host headers in HTTP/1.0', 'GET /ok HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n'],
  ['two Host headers at a path that is not there', 'GET /nowhere HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
  ['no Host header', 'GET /ok HTTP/1.1\r\n\r\n'],
])('a request with %s receives 400 with an envelope, and its connection closes', async (_what, bytes) => {
  const { url } = await server({})
  expect(await bareSocket(url, bytes)).toMatch(/^HTTP\/1\.1 400 [\s\S]*-32600/)
})

test('the server answers HTTP/1.0 requests with one Host header or none', async () => {
  const { url } = await server({})
  for (const head of ['', 'Host: a\r\n'])
    expect(await bareSocket(url, `GET /ok HTTP/1.0\r\n${head}\r\n`)).toMatch(/^HTTP\/1\.1 200 /)
})

test('headers over 32 KiB receive 431', async () => {
  const { url } = await server({})
  const answer = await bareSocket(url, `GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'a'.repeat(40_000)}\r\n\r\n`)
  expect(answer).toMatch(/^HTTP\/1.1 431 [\s\S]*-32600/)
})
