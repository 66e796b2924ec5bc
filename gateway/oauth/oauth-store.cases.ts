import { beforeEach, describe, expect, test } from 'vitest'
import type { OAuthEntry, OAuthStore } from './oauth-store.ts'

const entry = (change: Partial<OAuthEntry> = {}): OAuthEntry => ({
  model: 'AccessToken',
  id: 'a',
  payload: { scope: 'agent:read' },
  ...change,
})

/** Defines conformance cases for adapters of the OAuth store. `open` returns an empty store for each test. */
export function oauthStoreCases(name: string, open: () => Promise<OAuthStore>): void {
  let store: OAuthStore
  beforeEach(async () => {
    store = await open()
  })

  describe(`the OAuth state in ${name}`, () => {
    test('upsert inserts and replaces records of one model without affecting another', async () => {
      await store.upsert(entry())
      await store.upsert(entry({ model: 'Grant', payload: { other: 1 } }))
      await store.upsert(entry({ payload: { scope: 'agent:write' } }))
      expect(await store.find('AccessToken', 'a')).toEqual({ scope: 'agent:write' })
      expect(await store.find('Grant', 'a')).toEqual({ other: 1 })
      expect(await store.find('AccessToken', 'b')).toBeUndefined()
    })

    test('insert does not replace an existing record', async () => {
      expect(await store.insert(entry())).toBe(true)
      expect(await store.insert(entry({ payload: {} }))).toBe(false)
      expect(await store.find('AccessToken', 'a')).toEqual({ scope: 'agent:read' })
    })

    test('exchange writes only if the record is unchanged, so only one of several concurrent calls succeeds', async () => {
      await store.upsert(entry({ payload: { count: 0 } }))
      const counts = [1, 2, 3]
      const written = await Promise.all(
        counts.map((count) => store.exchange('AccessToken', 'a', { count: 0 }, { count })),
      )
      expect(written.filter(Boolean)).toHaveLength(1)
      expect(await store.find('AccessToken', 'a')).toEqual({ count: counts[written.indexOf(true)] })
      expect(await store.exchange('AccessToken', 'a', { count: 0 }, { count: 9 })).toBe(false)
      expect(await store.exchange('AccessToken', 'absent', { count: 0 }, { count: 9 })).toBe(false)
      expect(await store.find('AccessToken', 'absent')).toBeUndefined()
    })

    test('consume returns true only once, even after an upsert, and the payload shows the time', async () => {
      await store.upsert(entry())
      const used = await Promise.all([7, 8].map((at) => store.consume('AccessToken', 'a', at)))
      expect(used.filter(Boolean)).toHaveLength(1)
      await store.upsert(entry())
      expect(await store.consume('AccessToken', 'a', 9)).toBe(false)
      expect(await store.find('AccessToken', 'a')).toEqual({ scope: 'agent:read', consumed: used[0] ? 7 : 8 })
      expect(await store.consume('AccessToken', 'absent', 9)).toBe(false)
    })

    test('secondary keys match only within their model', async () => {
      await store.upsert(entry({ model: 'Session', uid: 'u' }))
      await store.upsert(entry({ model: 'DeviceCode', userCode: 'c' }))
      expect(await store.findByUid('Session', 'u')).toBeDefined()
      expect(await store.findByUid('DeviceCode', 'u')).toBeUndefined()
      expect(await store.findByUserCode('DeviceCode', 'c')).toBeDefined()
      expect(await store.findByUserCode('Session', 'c')).toBeUndefined()
    })

    test('destroy, revokeByGrantId and revokeByClientId remove only matching records', async () => {
      const left = async () =>
        (await Promise.all(['a', 'b', 'c', 'd'].map((id) => store.find('AccessToken', id)))).map(Boolean)
      await store.upsert(entry({ id: 'a', grantId: 'g' }))
      await store.upsert(entry({ id: 'b', grantId: 'h', clientId: 'x' }))
      await store.upsert(entry({ id: 'c', clientId: 'y' }))
      await store.upsert(entry({ id: 'd' }))
      await store.upsert(entry({ model: 'Client', id: 'x' }))
      await store.revokeByGrantId('g')
      expect(await left()).toEqual([false, true, true, true])
      await store.revokeByClientId('x')
      expect(await left()).toEqual([false, false, true, true])
      await store.destroy('AccessToken', 'c')
      expect(await left()).toEqual([false, false, false, true])
      expect(await store.find('Client', 'x')).toBeDefined()
    })

    test('sweepExpired removes the oldest expired records up to the limit and keeps records without an expiry', async () => {
      for (const expiresAt of [3, 1, 2, 10]) await store.upsert(entry({ id: `${expiresAt}`, expiresAt }))
      await store.upsert(entry({ model: 'Client', id: 'for ever' }))
      expect(await store.sweepExpired(10, 2)).toBe(2)
      expect(await store.find('AccessToken', '3')).toBeDefined()
      expect(await store.sweepExpired(10, 2)).toBe(1)
      expect(await store.sweepExpired(10, 2)).toBe(0)
      expect(await store.find('AccessToken', '10')).toBeDefined()
      expect(await store.find('Client', 'for ever')).toBeDefined()
    })

    test.each([
      ['an operator in it', { $set: { x: 1 }, 'a.b': '$where' }],
      ['lone surrogates in it', { scope: '\ud800' }],
    ])('a payload with %s is returned unchanged', async (_what, payload) => {
      await store.upsert(entry({ id: 'a.$b', clientId: '$x.y', payload }))
      expect(await store.find('AccessToken', 'a.$b')).toEqual(payload)
      await store.revokeByClientId('$x.y')
      expect(await store.find('AccessToken', 'a.$b')).toBeUndefined()
    })

    test('lists the records of a model, or those of one client', async () => {
      await store.upsert(entry({ id: 'a', clientId: 'alice', payload: { of: 'alice' } }))
      await store.upsert(entry({ id: 'b', clientId: 'bob', payload: { of: 'bob' } }))
      await store.upsert(
        entry({ model: 'RefreshToken', id: 'a', clientId: 'alice', payload: { other: true } }),
      )
      const listed = await store.list('AccessToken')
      expect(new Set(listed.map((payload) => payload['of']))).toEqual(new Set(['alice', 'bob']))
      expect(listed).toHaveLength(2)
      expect(await store.list('AccessToken', 'alice')).toEqual([{ of: 'alice' }])
      expect(await store.list('AccessToken', 'carol')).toEqual([])
    })

    test('only one of twenty concurrent inserts and one of twenty concurrent consumers succeed', async () => {
      await Promise.all(Array.from({ length: 20 }, (_, n) => store.upsert(entry({ payload: { n } }))))
      expect(await store.find('AccessToken', 'a')).toEqual({ n: expect.any(Number) })
      const used = await Promise.all(
        Array.from({ length: 20 }, (_, n) => store.consume('AccessToken', 'a', n)),
      )
      expect(used.filter(Boolean)).toHaveLength(1)
      const made = await Promise.all(Array.from({ length: 20 }, () => store.insert(entry({ id: 'new' }))))
      expect(made.filter(Boolean)).toHaveLength(1)
    })
  })
}
