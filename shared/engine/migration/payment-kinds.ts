import { type ClaimDocument, claimsOf } from '@parley/kit/database/mongodb/unique-values'
import { paymentCollection, paymentOf, paymentRow } from '../store/payments.ts'
import { purseCollection, transferCollection, transferOf, transferRow } from '../store/test-money.ts'
import { offerCollection } from '../store/transfer-offers.ts'
import { asDocuments, collectionKind, type Kind } from './kind.ts'

/** The kinds for the ledger with its unique values, and for test money. */
export function paymentKinds(scope: string): Kind[] {
  const { claims } = paymentCollection.mongodb ?? {}
  const payments = collectionKind({ title: 'payments', scope, declaration: paymentCollection }, (row) =>
    paymentRow(paymentOf(row), true),
  )
  return [
    {
      ...payments,
      documents: (row) => {
        const { payments: all = [] } = payments.documents(row)
        const claimed = asDocuments(all).flatMap((document) =>
          claimsOf(scope, claims?.prefixes ?? {}, document).map(
            ({ _id }): ClaimDocument => ({ _id, agent_id: scope, row: document._id, at: 0 }),
          ),
        )
        return { payments: all, payment_claims: claimed }
      },
    },
    collectionKind({ title: 'test purses', scope, declaration: purseCollection }, (row) => ({
      purse: row.purse ?? '',
      version: 0,
      left_over: row.left_over,
    })),
    collectionKind({ title: 'test transfers', scope, declaration: transferCollection }, (row) =>
      transferRow({ nonceKey: row.nonce_key ?? '', move: 'migrated', ...transferOf(row) }),
    ),
    collectionKind({ title: 'transfer offers', scope, declaration: offerCollection }, (row) => ({
      ...row,
      amount_key: row.amount_key ?? '',
    })),
  ]
}
