import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { CircuitBreaker, isConnectionFailure } from './circuit-breaker.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => vi.useRealTimers())

const refused = (message = 'refused') => Object.assign(new Error(message), { code: 'ECONNREFUSED' })

/** A circuit breaker with requests that are pending until the test settles them. */
function guardedServer() {
  const breaker = new CircuitBreaker({ failureThreshold: 3, openMs: 1000 })
  const requests: PromiseWithResolvers<string>[] = []
  const call = () =>
    breaker
      .run(() => {
        const request = Promise.withResolvers<string>()
        requests.push(request)
        return request.promise
      })
      .catch((error: Error) => error.message)
  const settled = async (error?: Error) => {
    const outcome = call()
    if (error === undefined) requests.at(-1)?.resolve('ok')
    else requests.at(-1)?.reject(error)
    return outcome
  }
  return { requests, call, settled }
}

test('opens after several consecutive connection failures, then fails fast with the last error', async () => {
  const { requests, call, settled } = guardedServer()
  await settled(refused())
  await settled(refused())
  await settled(refused('refused last'))
  expect(requests).toHaveLength(3)
  expect(await Promise.all([call(), call()])).toEqual(['refused last', 'refused last'])
  expect(requests).toHaveLength(3)
})

test('a success resets the failure count', async () => {
  const { requests, settled } = guardedServer()
  for (let i = 0; i < 5; i += 1) {
    await settled(refused())
    await settled(refused())
    await settled()
  }
  expect(requests).toHaveLength(15)
})

test('error responses never open the breaker, and they reset the failure count', async () => {
  const { requests, settled } = guardedServer()
  for (let i = 0; i < 10; i += 1) await settled(new Error('status 500'))
  await settled(refused())
  await settled(refused())
  await settled(new Error('status 500'))
  await settled(refused())
  expect(await settled()).toBe('ok')
  expect(requests).toHaveLength(15)
})

test('after the pause, the breaker lets one probe through, and a failed probe starts another pause', async () => {
  const { requests, call, settled } = guardedServer()
  for (let i = 0; i < 3; i += 1) await settled(refused())
  vi.advanceTimersByTime(999)
  expect(await call()).toBe('refused')
  vi.advanceTimersByTime(1)
  const probe = call()
  expect(await Promise.all([call(), call()])).toEqual(['refused', 'refused'])
  expect(requests).toHaveLength(4)
  requests[3]?.reject(refused('still refused'))
  expect([await probe, await call()]).toEqual(['still refused', 'still refused'])
  expect(requests).toHaveLength(4)
})

test.each<[string, Error | undefined]>([
  ['a success', undefined],
  ['an error response', new Error('status 500')],
])('a probe that ends with %s closes the breaker', async (_name, outcome) => {
  const { requests, call, settled } = guardedServer()
  for (let i = 0; i < 3; i += 1) await settled(refused())
  vi.advanceTimersByTime(1000)
  await settled(outcome)
  const both = [call(), call()]
  for (const request of requests) request.resolve('ok')
  expect(await Promise.all(both)).toEqual(['ok', 'ok'])
})

test('failures of requests sent before a successful probe do not reopen the breaker', async () => {
  const { requests, call, settled } = guardedServer()
  const slow = [call(), call(), call()]
  for (let i = 0; i < 3; i += 1) await settled(refused())
  vi.advanceTimersByTime(1000)
  await settled()
  for (const request of requests.slice(0, 3)) request.reject(refused('timed out late'))
  await Promise.all(slow)
  expect(await settled()).toBe('ok')
})

test.each<[string, unknown, boolean]>([
  ['a refused connection', refused(), true],
  ['an unknown host', Object.assign(new Error('x'), { code: 'ENOTFOUND' }), true],
  ['a broken connection', Object.assign(new Error('x'), { code: 'UND_ERR_SOCKET' }), true],
  ['a connection timeout', Object.assign(new Error('x'), { code: 'UND_ERR_CONNECT_TIMEOUT' }), true],
  ['a timeout', new DOMException('no answer in time', 'TimeoutError'), true],
  [
    'a connection failure as the cause of another error',
    new Error('no metadata', { cause: refused() }),
    true,
  ],
  ['all addresses refused', new AggregateError([refused()], 'x'), true],
  ['an error response', new Error('the introspection endpoint returned 500'), false],
  ['a programming error', new TypeError('x is not a function'), false],
  ['a value that is not an error', 'text', false],
])('classifies %s as a connection failure or not: %#', (_name, error, expected) => {
  expect(isConnectionFailure(error)).toBe(expected)
})
