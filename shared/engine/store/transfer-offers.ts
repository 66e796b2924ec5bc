import { atMost, type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import type { PaymentStore, PaymentTerms, TransferOffer } from './payment-store.ts'

const fields = {
  /** The key of the amount, which is unique; `lease` for the lease. */
  amount_key: 'key',
  session_id: 'key?',
  from_block: 'integer?',
  holder: 'text?',
  until: 'integer',
  /** The offer as JSON. */
  body: 'text',
} as const

export const offerCollection = declareCollection({
  name: 'transfer_offers',
  fields,
  key: ['amount_key'],
  indexes: {
    of_session: { equals: ['session_id'], sqlite: 'transfer_offers_of_session' },
    by_block: { order: 'from_block', sqlite: 'transfer_offers_by_block' },
  },
})

const leaseKey = 'lease'

/** Returns the key of an amount. Two sessions never have the same key, so that an amount identifies its session. */
export function amountKeyOf({
  network,
  asset,
  payTo,
  atomic,
}: Pick<PaymentTerms, 'network' | 'asset' | 'payTo' | 'atomic'>): string {
  return [network, asset, payTo, atomic].join(' ').toLowerCase()
}

type Offers = Pick<
  PaymentStore,
  | 'addTransferOffer'
  | 'findTransferOffer'
  | 'transferOfferOf'
  | 'listTransferOffers'
  | 'removeTransferOffer'
  | 'takeTransferLease'
>

export function transferOffers(database: DocumentDatabase): Offers {
  const offers = database.collection(offerCollection)
  const offerOf = ({ body }: { body: string }): TransferOffer => JSON.parse(body)
  return {
    addTransferOffer: async (offer) => {
      const { sessionId, fromBlock, until, terms } = offer
      const place = { session_id: sessionId, from_block: fromBlock, until }
      const row = { amount_key: amountKeyOf(terms), ...place, body: JSON.stringify(offer) }
      return (await offers.insert(row)) === 'written'
    },
    findTransferOffer: async (amountKey) => {
      const row = await offers.get({ amount_key: amountKey })
      return row && offerOf(row)
    },
    transferOfferOf: async (sessionId) => {
      const [row] = await offers.find('of_session', { session_id: sessionId }, { limit: 1 })
      return row && offerOf(row)
    },
    listTransferOffers: async (limit) =>
      (await offers.find('by_block', {}, { atMost: Number.MAX_SAFE_INTEGER, limit })).map(offerOf),
    removeTransferOffer: async ({ terms }) => {
      await offers.remove({ amount_key: amountKeyOf(terms) })
    },
    takeTransferLease: async ({ holder, now, until }) => {
      const row = { amount_key: leaseKey, holder, until, body: '{}' }
      return (await offers.insert(row, { over: { any: [{ holder }, { until: atMost(now) }] } })) === 'written'
    },
  }
}
