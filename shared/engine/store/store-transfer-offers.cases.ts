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

  test('the lease for reading transfers has one holder, and another one only after it expired', async () => {
    await using store = await open()
    const take = (holder: string, now: number) =>
      store.payments.takeTransferLease({ holder, now, until: now + 100 })
    const holders = Array.from({ length: 20 }, (_, at) => `${at}`)
    const taken = await Promise.all(holders.map((holder) => take(holder, 1000)))
    expect(taken.filter(Boolean)).toHaveLength(1)
    const holder = `${taken.indexOf(true)}`
    expect(await take(holder, 1050)).toBe(true)
    expect(await take('other', 1149)).toBe(false)
    expect(await take('other', 1150)).toBe(true)
    expect(await take(holder, 1151)).toBe(false)
    expect(await store.payments.listTransferOffers(10)).toEqual([])
  })
}
