import { createServer, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test, vi } from 'vitest'
import { Exchange } from './exchange.ts'

const controller = {
  aborted: false,
  paused: false,
  reason: null,
  abort: () => {},
  pause: () => {},
  resume: () => {},
}

test('the response of the client ends even if the observer throws', async () => {
  const raw = Object.assign(Object.create(ServerResponse.prototype), {
    write: () => true,
    end: vi.fn<() => void>(),
  })
  const exchange = new Exchange()
  exchange.onRequestStart(controller)
  exchange.onResponseStart(controller, 200, {})
  await exchange.head
  exchange.pipe(raw, {
    chunk: () => undefined,
    end: () => {
      throw new Error('observer')
    },
  })
  expect(() => exchange.onResponseEnd()).toThrow('observer')
  expect(raw.end).toHaveBeenCalledOnce()
})

/** The client's side of a response. */
function written() {
  const parts: string[] = []
  const raw = Object.assign(Object.create(ServerResponse.prototype), {
    write: (chunk: Buffer) => parts.push(chunk.toString()) > 0,
    end: (chunk?: Buffer) => parts.push(`${chunk?.toString() ?? ''}.`),
  })
  return { raw, parts }
}

test('the client receives the last chunk after the record that the observer writes at the end', async () => {
  const { raw, parts } = written()
  const record = Promise.withResolvers<void>()
  const exchange = new Exchange()
  exchange.onRequestStart(controller)
  exchange.onResponseStart(controller, 200, {})
  await exchange.head
  exchange.pipe(raw, { holdsLastChunk: true, chunk: () => undefined, end: () => record.promise })
  for (const part of ['one', 'two', 'three']) exchange.onResponseData(controller, Buffer.from(part))
  exchange.onResponseEnd()
  await vi.waitUntil(() => parts.length > 1)
  expect(parts).toEqual(['one', 'two'])
  record.resolve()
  await vi.waitUntil(() => parts.length > 2)
  expect(parts).toEqual(['one', 'two', 'three.'])
})

/** A stream whose first event the observer records. */
async function recordedStream() {
  const { raw, parts } = written()
  const record = Promise.withResolvers<void>()
  const calls: string[] = []
  const paused = { ...controller, pause: () => calls.push('pause'), resume: () => calls.push('resume') }
  const exchange = new Exchange()
  exchange.onRequestStart(paused)
  exchange.onResponseStart(paused, 200, {})
  await exchange.head
  const receive = (...events: string[]) => {
    for (const event of events) exchange.onResponseData(paused, Buffer.from(event))
  }
  const chunk = (bytes: Buffer) => (bytes.toString() === 'first' ? record.promise : undefined)
  const pipe = () => exchange.pipe(raw, { chunk, end: () => undefined })
  return { parts, record, calls, exchange, receive, pipe }
}

test.each(['before', 'after'] as const)(
  'an event that arrives %s the consumer waits for its record, and later events follow in order',
  async (arrival) => {
    const { parts, record, calls, exchange, receive, pipe } = await recordedStream()
    if (arrival === 'after') pipe()
    receive('first', 'second')
    if (arrival === 'before') pipe()
    calls.length = 0
    receive('b'.repeat(70_000))
    exchange.onResponseEnd()
    await new Promise((resolve) => setImmediate(resolve))
    // What waits is limited.
    expect([parts, calls]).toEqual([[], ['pause']])
    record.resolve()
    await vi.waitUntil(() => parts.at(-1)?.endsWith('.'))
    expect(parts.join(' ').replace(/b+/, 'third')).toMatch(/^first second third ?\.$/)
  },
)

test('a client receives a recorded event although the response breaks off during the record', async () => {
  const record = Promise.withResolvers<void>()
  const server = createServer((_, raw) => {
    raw.writeHead(200, { 'content-type': 'text/event-stream' })
    const exchange = new Exchange()
    exchange.onRequestStart(controller)
    exchange.onResponseStart(controller, 200, {})
    exchange.pipe(raw, { chunk: () => record.promise, end: () => undefined })
    exchange.onResponseData(controller, Buffer.from('first'))
    exchange.onResponseError(controller, new Error('connection reset'))
    record.resolve()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { body } = await fetch(`http://127.0.0.1:${port}`)
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe('first')
  await expect(reader.read()).rejects.toThrow(/terminated/)
  server.close()
})

test('a body is read before its consumer is attached up to 64 KiB, and is paused beyond that', async () => {
  const calls: string[] = []
  const paused = { ...controller, pause: () => calls.push('pause'), resume: () => calls.push('resume') }
  const exchange = new Exchange()
  exchange.onRequestStart(paused)
  exchange.onResponseStart(paused, 200, {})
  exchange.onResponseData(paused, Buffer.alloc(60_000, 'a'))
  expect(calls).toEqual([])
  exchange.onResponseData(paused, Buffer.alloc(60_000, 'b'))
  expect(calls).toEqual(['pause'])
  const body = exchange.collect(1_000_000, () => {})
  expect(calls).toEqual(['pause', 'resume'])
  exchange.onResponseData(paused, Buffer.from('c'))
  exchange.onResponseEnd()
  const bytes = await body
  expect(bytes.byteLength).toBe(120_001)
  expect(bytes.toString('latin1')).toBe(`${'a'.repeat(60_000)}${'b'.repeat(60_000)}c`)
  expect(calls).toEqual(['pause', 'resume'])
})
