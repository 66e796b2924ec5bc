import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { TransferOffer } from './payment-store.ts'
import type { OpenStore } from './store.cases.ts'
import { samplePayment } from './store-payments.cases.ts'
import { amountKeyOf } from './transfer-offers.ts'

const { terms } = samplePayment()

function sampleOffer(atomic: string, fields: Partial<TransferOffer> = {}): TransferOffer {
  return {
    sessionId: randomUUID(),
    owner: 'did:parley:alice:agent:1',
    terms: { ...terms, atomic },
    fromBlock: 1,
    expiresAt: 1000,
    until: 2000,
    ...fields,
  }
}

/** An amount belongs to one session, and one process reads the transfers. */
export function transferOfferCases(open: OpenStore): void {
  test('an amount belongs to one of 50 concurrent sessions until its offer is removed', async () => {
    await using store = await open()
    const offers = Array.from({ length: 50 }, () => sampleOffer('10001'))
    const added = await Promise.all(offers.map((offer) => store.payments.addTransferOffer(offer)))
    expect(added.filter(Boolean)).toHaveLength(1)
    const winner = offers[added.indexOf(true)] ?? sampleOffer('0')
    const key = amountKeyOf(winner.terms)
    expect(await store.payments.findTransferOffer(key)).toEqual(winner)
    expect(await store.payments.addTransferOffer(sampleOffer('10001'))).toBe(false)
    expect(await store.payments.addTransferOffer(sampleOffer('10002'))).toBe(true)
    const loser = offers[added.indexOf(false)] ?? winner
    await store.payments.removeTransferOffer(loser)
    expect(await store.payments.findTransferOffer(key)).toEqual(winner)
    await store.payments.removeTransferOffer(winner)
    expect(await store.payments.findTransferOffer(key)).toBeUndefined()
    expect(await store.payments.addTransferOffer(sampleOffer('10001'))).toBe(true)
  })

  test('the same amount in another spelling of the addresses is the same amount', async () => {
    await using store = await open()
    const asset = `0x${'aB'.repeat(20)}`
    const offerOf = (one: string) => sampleOffer('1', { terms: { ...terms, atomic: '1', asset: one } })
    expect(await store.payments.addTransferOffer(offerOf(asset))).toBe(true)
    expect(await store.payments.addTransferOffer(offerOf(asset.toLowerCase()))).toBe(false)
  })

  test('offers are found by their session and listed by their block', async () => {
    await using store = await open()
    const offers = [30, 10, 20].map((fromBlock, at) => sampleOffer(`${at}`, { fromBlock }))
    for (const offer of offers) await store.payments.addTransferOffer(offer)
    expect(await store.payments.transferOfferOf(offers[2]?.sessionId ?? '')).toEqual(offers[2])
    expect(await store.payments.transferOfferOf('x')).toBeUndefined()
    expect(await store.payments.listTransferOffers(2)).toEqual([offers[1], offers[2]])
  })

  test('offers are counted by network and owner', async () => {
    await using store = await open()
    const { network } = terms
    for (const [atomic, owner] of [
      ['1', 'alice'],
      ['2', 'alice'],
      ['3', 'bob'],
    ] as const)
      await store.payments.addTransferOffer(sampleOffer(atomic, { owner }))
    expect(await store.payments.countTransferOffers(network, 'alice')).toEqual({ owner: 2, all: 3 })
    expect(await store.payments.countTransferOffers(network, 'carol')).toEqual({ owner: 0, all: 3 })
    expect(await store.payments.countTransferOffers('eip155:2', 'alice')).toEqual({ owner: 0, all: 0 })
  })

  test('the lease of a network has one holder, and another one only after it expired', async () => {
    await using store = await open()
    const take = async (holder: string, now: number, network = 'eip155:1') =>
      (await store.payments.takeTransferLease({ network, holder, now, until: now + 100 })) !== undefined
    const holders = Array.from({ length: 20 }, (_, at) => `${at}`)
    const taken = await Promise.all(holders.map((holder) => take(holder, 1000)))
    expect(taken.filter(Boolean)).toHaveLength(1)
    const holder = `${taken.indexOf(true)}`
    expect(await take(holder, 1050)).toBe(true)
    expect(await take('other', 1149)).toBe(false)
    expect(await take('other', 1149, 'eip155:2')).toBe(true)
    expect(await take('other', 1150)).toBe(true)
    expect(await take(holder, 1151)).toBe(false)
    expect(await store.payments.listTransferOffers(10)).toEqual([])
  })

  test('the next holder of the lease receives the progress of the previous one', async () => {
    await using store = await open()
    const lease = { network: 'eip155:1', holder: 'a', now: 1, until: 2 }
    const progress = { readUpTo: 7, behindSince: 5 }
    expect(await store.payments.transferProgress('eip155:1')).toEqual({})
    expect(await store.payments.takeTransferLease(lease)).toEqual({})
    expect(await store.payments.takeTransferLease({ ...lease, progress })).toEqual(progress)
    const other = { ...lease, holder: 'b', progress: { readUpTo: 1 } }
    expect(await store.payments.takeTransferLease(other)).toBeUndefined()
    expect(await store.payments.takeTransferLease({ ...lease, holder: 'b', now: 2, until: 3 })).toEqual(
      progress,
    )
    expect(await store.payments.transferProgress('eip155:1')).toEqual(progress)
  })
}
