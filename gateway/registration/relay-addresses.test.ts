import { makeLog } from '@parley/kit/process/log'
import { afterEach, expect, test } from 'vitest'
import { RelayAddresses } from './relay-addresses.ts'

const stack: Disposable[] = []
afterEach(() => {
  for (const one of stack.splice(0)) one[Symbol.dispose]()
})

const entries = new Map<string, Record<string, unknown>>()
let now = 0
const store = {
  upsert: async ({ id, payload }: { id: string; payload: Record<string, unknown> }) =>
    void entries.set(id, payload),
  list: async () => [...entries.values()],
}
function addressesAt(host: string): RelayAddresses {
  const log = makeLog({ level: 'silent', name: 'test' })
  const addresses = new RelayAddresses({ store, isShared: true, host, log, now: () => now })
  stack.push(addresses)
  return addresses
}

test.each([
  ['http://127.0.0.1:1', 'a', 'http://127.0.0.1:1'],
  ['http://127.0.0.1:1', 'b', undefined],
  ['http://10.0.0.1:1', 'b', 'http://10.0.0.1:1'],
])('the relay at %s of machine a is seen by machine %s as %s', async (url, host, expected) => {
  entries.clear()
  const one = addressesAt('a')
  one.url = url
  await one.sync()
  const other = addressesAt(host)
  await other.sync()
  expect(other.url).toBe(expected)
})

test('the own relay comes first, then one on the same machine', async () => {
  entries.clear()
  for (const [host, url] of [
    ['a', 'http://10.0.0.1:1'],
    ['b', 'http://10.0.0.2:1'],
  ] as const) {
    const one = addressesAt(host)
    one.url = url
    await one.sync()
  }
  const other = addressesAt('b')
  await other.sync()
  expect(other.url).toBe('http://10.0.0.2:1')
  other.url = 'http://127.0.0.1:9'
  expect(other.url).toBe('http://127.0.0.1:9')
})

test('an address that is no longer renewed is not used', async () => {
  entries.clear()
  const one = addressesAt('a')
  one.url = 'http://10.0.0.1:1'
  await one.sync()
  now += 11_000
  const other = addressesAt('b')
  await other.sync()
  expect(other.url).toBeUndefined()
})

test('the address of a relay that has ended is not used, neither by its gateway nor by others', async () => {
  entries.clear()
  const [one, other] = [addressesAt('a'), addressesAt('a')]
  one.url = 'http://127.0.0.1:1'
  await one.sync()
  one.url = undefined
  await one.sync()
  await other.sync()
  expect([one.url, other.url]).toEqual([undefined, undefined])
  one.url = 'http://127.0.0.1:2'
  await one.sync()
  await other.sync()
  expect([one.url, other.url]).toEqual(['http://127.0.0.1:2', 'http://127.0.0.1:2'])
})
