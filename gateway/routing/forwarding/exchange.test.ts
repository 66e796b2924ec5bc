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
