import { ServerResponse } from 'node:http'
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
    chunk: () => {},
    end: () => {
      throw new Error('observer')
    },
  })
  expect(() => exchange.onResponseEnd()).toThrow('observer')
  expect(raw.end).toHaveBeenCalledOnce()
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
