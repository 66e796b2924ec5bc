import { once } from 'node:events'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { createServer } from '@parley/kit/http/server'
import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

const lines: string[] = []
const metrics = createMetrics()
const destination = { write: (line: string) => void lines.push(line) }
const app = createServer({ log: makeLog({ level: 'debug', name: 'test', destination }), metrics })
let arrived = Promise.withResolvers<void>()
let port: number
beforeAll(async () => {
  app.addHook('preParsing', async () => arrived.resolve())
  app.post('/whole', async () => 'ok')
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null))
    scope.post('/stream', async (request) => (await buffer(request.raw)).byteLength)
  })
  port = Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port)
})
afterAll(() => app.close())

/** Number of requests to the endpoint by status. */
async function countedAt(endpoint: string): Promise<Record<string, number>> {
  const text = await metrics.registry.getSingleMetricAsString('http_requests_total')
  const series = new RegExp(`endpoint="${endpoint}",status="(\\d+)".*} (\\d+)$`, 'gm')
  return Object.fromEntries([...text.matchAll(series)].map(([, status, value]) => [status, Number(value)]))
}

const logged = () => lines.map((line) => JSON.parse(line) as { level: number; msg: string })

test.each([
  ['/whole', 'destroy'],
  ['/whole', 'resetAndDestroy'],
  ['/stream', 'destroy'],
  ['/stream', 'resetAndDestroy'],
] as const)(
  'a client that leaves in the middle of its body (POST %s, %s) is not an error of the server: logged at debug, counted as 499',
  async (path, leave) => {
    lines.length = 0
    arrived = Promise.withResolvers()
    const { 499: before = 0 } = await countedAt(path)
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc`)
    await arrived.promise
    socket[leave]()
    await vi.waitFor(
      async () => {
        expect(await countedAt(path)).toEqual({ 499: before + 1 })
        expect(logged()).toMatchObject([
          { level: 20, msg: 'client disconnected before its request was complete' },
        ])
      },
      { timeout: 100_000 },
    )
  },
)
