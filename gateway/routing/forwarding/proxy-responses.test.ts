import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import net from 'node:net'
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

/**
 * Starts a gateway in front of an agent that sends these bytes for each request. Returns the gateway's log lines,
 * too.
 */
async function gatewayBefore(answer: string) {
  const agent = net.createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', () => socket.write(answer))
  })
  agent.listen(0, '127.0.0.1')
  await once(agent, 'listening')
  open.push(() => agent.close())
  const entry = {
    slug: 'calc',
    url: `http://127.0.0.1:${(agent.address() as AddressInfo).port}`,
    status: 'ready',
    origin: 'supervised',
    admitted: true,
  } as AgentEntry
  const lines: string[] = []
  const log = makeLog({
    level: 'info',
    name: 'test',
    destination: { write: (line) => void lines.push(line) },
  })
  const app = createServer({ log, metrics: createMetrics() })
  const upstream = createUpstream()
  await proxyAgents(app, {
    find: () => ({ entry }),
    dispatcherFor: () => upstream,
    tokens: acceptsAnyToken,
    cardOut: noCards,
  })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  open.push(
    () => upstream.destroy(),
    () => app.close(),
    () => app.server.closeAllConnections(),
  )
  return { url: `${url}/agents/calc/`, lines }
}

const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }
const form = { method: 'POST', headers: { 'content-type': 'text/plain' }, body: 'text' }

test.each([
  ['0, to a GET', 204, 0, {}],
  ['5, to a GET', 204, 5, {}],
  ['5, to a JSON-RPC call', 204, 5, json],
  ['5, to another POST', 204, 5, form],
  ['5 and 304, to a GET', 304, 5, {}],
  ['5 and 304, to a JSON-RPC call', 304, 5, json],
] as const)(
  'a response without a body and with Content-Length %s ends, and the next response arrives',
  async (_, status, length, init) => {
    const { url } = await gatewayBefore(
      `HTTP/1.1 ${status} Odd\r\nContent-Length: ${length}\r\nETag: "odd"\r\n\r\n`,
    )
    for (let time = 0; time < 2; time += 1) {
      const answered = await fetch(url, init)
      expect([answered.status, answered.headers.get('etag'), await answered.text()]).toEqual([
        status,
        '"odd"',
        '',
      ])
      expect(answered.headers.get('content-length')).toBeNull()
    }
  },
)

test.each([
  ['that is not HTTP', 'what is this?\r\n\r\n', {}],
  ['that is not HTTP, to a JSON-RPC call', 'what is this?\r\n\r\n', json],
  ['with two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx', {}],
  ['with a broken header', 'HTTP/1.1 200 OK\r\nBad Header: \x01\r\n\r\n', json],
])('a response %s causes a 503 and one warning in the log without a stack trace', async (_, answer, init) => {
  const { url, lines } = await gatewayBefore(answer)
  const answered = await fetch(url, init)
  expect(answered.status).toBe(503)
  expect(await answered.json()).toMatchObject({ error: { code: -32042, data: { agent: 'calc' } } })
  const logged = lines.map((line) => JSON.parse(line) as { level: number; agent?: string })
  expect(logged).toMatchObject([{ level: 40, agent: 'calc' }])
  expect(lines.join('')).not.toMatch(/stack| at /)
})
