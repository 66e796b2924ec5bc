import { atMost, type DocumentDatabase, declareCollection } from '@parley/kit/database/documents'
import type { PaymentStore, PaymentTerms, TransferOffer, TransferProgress } from './payment-store.ts'

const fields = {
  /** The key of the amount, which is unique, or that of a lease. */
  amount_key: 'key',
  network: 'key?',
  owner: 'key?',
  session_id: 'key?',
  from_block: 'integer?',
  holder: 'text?',
  until: 'integer',
  /** The offer or the progress as JSON. */
  body: 'text',
} as const

export const offerCollection = declareCollection({
  name: 'transfer_offers',
  fields,
  key: ['amount_key'],
  indexes: {
    of_session: { equals: ['session_id'], sqlite: 'transfer_offers_of_session' },
    of_network: { equals: ['network'], sqlite: 'transfer_offers_of_owner' },
    of_owner: { equals: ['network', 'owner'], sqlite: 'transfer_offers_of_owner' },
    by_block: { order: 'from_block', sqlite: 'transfer_offers_by_block' },
  },
})

const leaseKeyOf = (network: string) => `lease ${network}`

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
  | 'countTransferOffers'
  | 'removeTransferOffer'
  | 'takeTransferLease'
  | 'transferProgress'
>

export function transferOffers(database: DocumentDatabase): Offers {
  const offers = database.collection(offerCollection)
  const offerOf = ({ body }: { body: string }): TransferOffer => JSON.parse(body)
  const transferProgress = async (network: string): Promise<TransferProgress> => {
    const lease = await offers.get({ amount_key: leaseKeyOf(network) })
    return lease === undefined ? {} : JSON.parse(lease.body)
  }
  return {
    addTransferOffer: async (offer) => {
      const { sessionId, owner, fromBlock, until, terms } = offer
      const place = { network: terms.network, owner, session_id: sessionId, from_block: fromBlock, until }
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
    countTransferOffers: async (network, owner) => ({
      owner: await offers.count('of_owner', { network, owner }),
      all: await offers.count('of_network', { network }),
    }),
    removeTransferOffer: async ({ terms, sessionId }) => {
      await offers.remove({ amount_key: amountKeyOf(terms) }, { session_id: sessionId })
    },
    takeTransferLease: async ({ network, holder, now, until, progress }) => {
      const kept = progress ?? (await transferProgress(network))
      const row = { amount_key: leaseKeyOf(network), holder, until, body: JSON.stringify(kept) }
      const taken = await offers.insert(row, { over: { any: [{ holder }, { until: atMost(now) }] } })
      return taken === 'written' ? kept : undefined
    },
    transferProgress,
  }
}
