import { expect, test } from 'vitest'
import type { OpenStore } from './store.cases.ts'

const [alice, bob] = ['did:parley:alice:agent:1', 'did:parley:bob:agent:2']
const signature = (value: number) => Buffer.alloc(64, value)

/** A signed request is accepted only once while its timestamp is valid. */
export function signatureCases(open: OpenStore): void {
  test('is accepted once per DID', async () => {
    await using store = await open({ clock: () => 1000 })
    expect(await store.takeSignature(alice, signature(1), 2000)).toBe(true)
    expect(await store.takeSignature(alice, signature(1), 2000)).toBe(false)
    expect(await store.takeSignature(bob, signature(1), 2000)).toBe(true)
    expect(await store.takeSignature(alice, signature(2), 2000)).toBe(true)
  })

  test('is accepted by only one of 50 concurrent uses', async () => {
    await using store = await open()
    const until = Date.now() + 60_000
    const taken = await Promise.all(
      Array.from({ length: 50 }, () => store.takeSignature(alice, signature(1), until)),
    )
    expect(taken.filter(Boolean)).toHaveLength(1)
  })

  test('is accepted again after its expiry', async () => {
    let now = 1000
    await using store = await open({ clock: () => now })
    for (let value = 0; value < 20; value += 1) await store.takeSignature(alice, signature(value), 2000)
    now = 1999
    expect(await store.takeSignature(alice, signature(19), 3000)).toBe(false)
    now = 2000
    expect(await store.takeSignature(alice, signature(19), 3000)).toBe(true)
    expect(await store.takeSignature(alice, signature(19), 3000)).toBe(false)
  })
}
