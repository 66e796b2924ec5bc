import { Voucher } from '@parley/kit/did/vouch'
import { expect, test } from 'vitest'
import type { AgentEntry } from '../registry/entry.ts'
import { entryProofs } from './entry-proof.ts'

class CountingVoucher extends Voucher {
  signed = 0
  override sign(...args: Parameters<Voucher['sign']>): Promise<string> {
    this.signed += 1
    return super.sign(...args)
  }
}

const entry = {
  slug: 'x',
  url: 'http://x',
  verified: true,
  keys: ['k'],
  card: { name: 'x' },
} as unknown as AgentEntry

test('a proof is signed only once, even for concurrent requests and after heartbeats', async () => {
  const voucher = new CountingVoucher({ did: 'did:parley:a:b:c', seed: Buffer.alloc(32, 1) })
  const proofOf = entryProofs(voucher, 'http://gateway')
  const proofs = await Promise.all([
    proofOf(entry),
    proofOf(entry),
    proofOf({ ...entry, load: { queueDepth: 3 } }),
  ])
  expect(new Set(proofs).size).toBe(1)
  expect(voucher.signed).toBe(1)
})

test.each<[string, Partial<AgentEntry>]>([
  ['card', { card: { name: 'y' } }],
  ['keys', { keys: ['k', 'l'] }],
  ['address', { url: 'http://y' }],
  ['DID', { did: 'did:parley:x:agent:y' }],
  ['“verified”', { verified: false }],
])('an entry with a changed %s gets a new proof', async (_what, changes) => {
  const voucher = new CountingVoucher({ did: 'did:parley:a:b:c', seed: Buffer.alloc(32, 1) })
  const proofOf = entryProofs(voucher, 'http://gateway')
  await proofOf(entry)
  await proofOf({ ...entry, ...changes })
  expect(voucher.signed).toBe(2)
})
