import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { afterEach, expect, test, vi } from 'vitest'
import { createServer } from './server.ts'

afterEach(() => void vi.useRealTimers())

test('the refusal of an inner request, which has no connection, is not followed by a wait for its body', async () => {
  const app = createServer({ log: makeLog({ level: 'silent', name: 'test' }), metrics: createMetrics() })
  await app.ready()
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const { statusCode } = await app.inject({ method: 'POST', url: '/unknown', payload: '{}' })
  expect(statusCode).toBe(404)
  expect(() => vi.advanceTimersByTime(60_000)).not.toThrow()
  await app.close()
})
