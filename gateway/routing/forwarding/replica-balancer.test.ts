import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { ReplicaBalancer } from './replica-balancer.ts'
import { createUpstream } from './upstream.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.()
})

async function replica(answer: (response: http.ServerResponse) => void = (response) => response.end('ok')) {
  const got: string[] = []
  const server = http.createServer((request, response) => void serve(request, response))
  const serve = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    got.push(Buffer.concat(chunks).toString())
    answer(response)
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  open.push(stop)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, got, stop }
}

function dispatcherFor(urls: string[]) {
  const upstream = createUpstream()
  open.push(() => upstream.destroy())
  const replicas = urls.map((url, n) => ({ id: `${n}`, url, load: {}, lastSeen: '', leaseUntil: 0 }))
  const entry = { url: urls[0], replicas } as unknown as AgentEntry
  const ways = new ReplicaBalancer()
  const origin = urls[0] as string
  return (body: string | Readable | null = 'x') =>
    ways
      .dispatcherFor(entry, upstream)
      .request({ origin, path: '/', method: body === null ? 'GET' : 'POST', body })
}

test('consecutive requests alternate between processes, and a busy process gets none', async () => {
  const held: http.ServerResponse[] = []
  let holds = true
  const hold = (response: http.ServerResponse) => (holds ? held.push(response) : response.end('ok'))
  const [a, b] = [await replica(hold), await replica()]
  const send = dispatcherFor([a.url, b.url])
  const first = send()
  const second = send()
  while (a.got.length + b.got.length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
  for (let n = 0; n < 6; n += 1) await (await send()).body.text()
  expect([a.got.length, b.got.length]).toEqual([1, 7])
  holds = false
  for (const response of held) response.end('ok')
  await Promise.all([first, second].map(async (one) => (await one).body.text()))
  for (let n = 0; n < 6; n += 1) await (await send()).body.text()
  expect([a.got.length, b.got.length]).toEqual([4, 10])
})

test('a process that cannot be reached loses no request, because no byte was sent to it', async () => {
  const [a, b] = [await replica(), await replica()]
  const send = dispatcherFor([a.url, b.url])
  a.stop()
  for (let n = 0; n < 4; n += 1) {
    expect(await (await send()).body.text()).toBe('ok')
    expect(await (await send(null)).body.text()).toBe('ok')
  }
  expect(b.got).toHaveLength(8)
})

test('a request that may have been sent is not repeated', async () => {
  const breaks = (response: http.ServerResponse) => response.destroy()
  const [a, b] = [await replica(breaks), await replica(breaks)]
  const send = dispatcherFor([a.url, b.url])
  await expect(send()).rejects.toThrow('other side closed')
  expect(a.got.length + b.got.length).toBe(1)
})

const refusal =
  (status: number, reason: string, code = -32042) =>
  (response: http.ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '5' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, data: { reason } } }))
  }

test('a stopping process that rejects new requests is skipped, even if its response arrives in chunks', async () => {
  const dripping = (response: http.ServerResponse) => {
    response.writeHead(503, { 'content-type': 'application/json' })
    const said = '{"error":{"code":-32042,"data":{"reason":"draining"}}}'
    response.write(said.slice(0, 20))
    setTimeout(() => response.end(said.slice(20)), 20)
  }
  for (const stopping of [refusal(503, 'draining'), dripping]) {
    const [a, b] = [await replica(stopping), await replica()]
    const send = dispatcherFor([a.url, b.url])
    for (let n = 0; n < 6; n += 1) {
      const answer = await send(n % 2 === 0 ? 'x' : null)
      expect([answer.statusCode, await answer.body.text()]).toEqual([200, 'ok'])
    }
    expect([a.got.length, b.got.length]).toEqual([1, 6])
  }
})

test('if all processes are stopping, the response of the last one is returned', async () => {
  const [a, b] = [await replica(refusal(503, 'draining')), await replica(refusal(503, 'draining'))]
  const answer = await dispatcherFor([a.url, b.url])()
  expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5'])
  expect(await answer.body.json()).toMatchObject({ error: { data: { reason: 'draining' } } })
  expect([a.got.length, b.got.length]).toEqual([1, 1])
})

test.each([
  ['another reason', refusal(503, 'storage'), 503],
  ['another code', refusal(503, 'draining', -32000), 503],
  ['another status', refusal(500, 'draining'), 500],
  ['no JSON', (response: http.ServerResponse) => response.writeHead(503).end('draining'), 503],
  ['no body', (response: http.ServerResponse) => response.writeHead(503).end(), 503],
])('a response with %s is returned unmodified, and no other process is tried', async (_, says, status) => {
  const [a, b] = [await replica(says), await replica(says)]
  const answer = await dispatcherFor([a.url, b.url])()
  await answer.body.dump()
  expect([answer.statusCode, a.got.length + b.got.length]).toEqual([status, 1])
})

test('a large 503 response does not count as a rejection and is returned completely', async () => {
  const long = (response: http.ServerResponse) => response.writeHead(503).end('x'.repeat(200_000))
  const [a, b] = [await replica(long), await replica(long)]
  const answer = await dispatcherFor([a.url, b.url])()
  const text = await answer.body.text()
  expect([answer.statusCode, text.length, a.got.length + b.got.length]).toEqual([503, 200_000, 1])
})

test('a streamed body is not sent again', async () => {
  const [a, b] = [await replica(refusal(503, 'draining')), await replica(refusal(503, 'draining'))]
  const answer = await dispatcherFor([a.url, b.url])(Readable.from(['x']))
  expect([answer.statusCode, a.got.length + b.got.length]).toEqual([503, 1])
  await answer.body.dump()
})

test('if no process can be reached, the error is returned', async () => {
  const [a, b] = [await replica(), await replica()]
  a.stop()
  b.stop()
  await expect(dispatcherFor([a.url, b.url])()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
})

test('an agent with one process uses the plain upstream', () => {
  const upstream = createUpstream()
  open.push(() => upstream.destroy())
  expect(new ReplicaBalancer().dispatcherFor({ url: 'http://a' } as AgentEntry, upstream)).toBe(upstream)
})
