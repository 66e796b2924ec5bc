import { beforeEach, expect, test } from 'vitest'
import { IntrospectionCache } from './introspection-cache.ts'

const clocks = { monotonic: () => at.monotonic, wall: () => at.wall }
let at = { monotonic: 0, wall: 0 }
let cache: IntrospectionCache
beforeEach(() => {
  at = { monotonic: 5000, wall: 1_700_000_000_000 }
  cache = new IntrospectionCache(10, clocks)
})

const state = (seq = 1, tags = ['t:1']) => ({ instance: 'gateway', seq, tags, now: at.wall })
const granted = (seq = 1, drop: 'all' | string[] = []) => ({
  instance: 'gateway',
  seq,
  drop,
  lease_ms: 1900,
})
const active = (seconds = 60) => ({ active: true, client_id: 'alice', exp: at.wall / 1000 + seconds })
const pass = (ms: number) => {
  at.monotonic += ms
  at.wall += ms
}
const isCached = (token: string) => cache.get(token) !== undefined

/** Begins a lease and caches one response. */
function begin() {
  cache.granted(cache.poll(), granted())
  cache.set('token', cache.now(), active(), state())
  expect(isCached('token')).toBe(true)
}

test('the lease is counted from the time at which the poll was sent', () => {
  const sent = cache.poll()
  pass(1500)
  cache.granted(sent, granted())
  cache.set('token', cache.now(), active(), state())
  pass(399)
  expect(isCached('token')).toBe(true)
  pass(1)
  expect(isCached('token')).toBe(false)
})

test('a renewed lease keeps the responses', () => {
  begin()
  const sent = cache.poll()
  pass(600)
  cache.granted(sent, granted())
  pass(1200)
  expect(isCached('token')).toBe(true)
})

test.each([
  ['back', -3_600_000],
  ['forward', 3_600_000],
])('a wall clock that is set %s ends the lease until the next poll', async (_direction, ms) => {
  begin()
  at.wall += ms
  expect(isCached('token')).toBe(false)
  cache.granted(cache.poll(), granted())
  expect(isCached('token')).toBe(true)
})

test('a lease ends on the monotonic clock even if the wall clock is set back by as much', () => {
  begin()
  at.monotonic += 1900
  expect(isCached('token')).toBe(false)
})

test('a lease ends on the wall clock even if the monotonic clock stopped while the machine was suspended', () => {
  begin()
  at.wall += 1900
  expect(isCached('token')).toBe(false)
})

test('invalidations remove the responses with their tags', () => {
  begin()
  cache.set('other', cache.now(), active(), state(1, ['t:2', 'c:bob']))
  cache.granted(cache.poll(), granted(2, ['c:alice', 't:1']))
  expect([isCached('token'), isCached('other')]).toEqual([false, true])
  cache.granted(cache.poll(), granted(3, 'all'))
  expect(isCached('other')).toBe(false)
})

test('a response from before an applied invalidation is not cached', () => {
  begin()
  cache.granted(cache.poll(), granted(2, ['t:9']))
  cache.set('late', cache.now(), active(), state(1))
  cache.set('current', cache.now(), active(), state(2))
  cache.set('newer', cache.now(), active(), state(3))
  expect(['late', 'current', 'newer'].map(isCached)).toEqual([false, true, true])
})

test('responses of another instance are not cached, and its lease begins with an empty cache', () => {
  begin()
  cache.set('other', cache.now(), active(), { ...state(), instance: 'restarted' })
  expect(isCached('other')).toBe(false)
  cache.granted(cache.poll(), { ...granted(), instance: 'restarted' })
  expect(isCached('token')).toBe(false)
})

test('without a lease nothing is cached', () => {
  cache.set('token', cache.now(), active(), state())
  cache.granted(cache.poll(), granted())
  expect(isCached('token')).toBe(false)
  begin()
  cache.lost()
  cache.granted(cache.poll(), granted())
  expect(isCached('token')).toBe(false)
})

test('only active responses with an expiry are cached', () => {
  cache.granted(cache.poll(), granted())
  cache.set('inactive', cache.now(), { active: false }, state())
  cache.set('unlimited', cache.now(), { active: true, client_id: 'alice' }, state())
  expect(['inactive', 'unlimited'].map(isCached)).toEqual([false, false])
})

test('a token expires by the clock of the OAuth server', async () => {
  cache.granted(cache.poll(), granted())
  // The clock of this process is an hour behind.
  const now = at.wall + 3_600_000
  const exp = now / 1000 + 1
  cache.set('token', cache.now(), { active: true, client_id: 'alice', exp }, { ...state(), now })
  expect(await cache.get('token')).toMatchObject({ active: true })
  pass(1000)
  expect(await cache.get('token')).toEqual({ active: false, exp })
})

test('the least recently used responses are dropped', () => {
  cache.granted(cache.poll(), granted())
  for (let number = 0; number < 100; number += 1) {
    cache.set(`token-${number}`, cache.now(), active(), state())
    expect(isCached('token-0')).toBe(true)
    expect(cache.size).toBeLessThanOrEqual(10)
  }
  expect([isCached('token-99'), isCached('token-50')]).toEqual([true, false])
})
