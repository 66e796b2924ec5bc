import { hashOf } from '@parley/kit/database/mongodb/keys'
import { type ClaimDocument, claimsIn } from '../store/mongodb/payment-claims.ts'
import { paymentDocument } from '../store/mongodb/payments.ts'
import type { Inside } from '../store/mongodb/record.ts'
import type { PurseDocument, TransferDocument } from '../store/mongodb/test-money.ts'
import { type PaymentRow, paymentOf } from '../store/sqlite/payments.ts'
import type { Kind } from './kind.ts'

/** The ledger and the sessions, and test money. */
export function paymentKinds(inside: Inside): Kind[] {
  return [payments(inside), purses(inside), transfers(inside)]
}

/** A row's number stands for when it was added: it keeps the order, and cursors stay good. */
function payments(inside: Inside): Kind {
  const { agentId } = inside
  return {
    name: 'payments',
    table: 'payments',
    select: `SELECT seq, id, owner, state, version, updated_at, nonce_key, purpose, task_id, capture_token, due_at, body
      FROM payments`,
    key: { seq: 'seq' },
    documents: (row) => {
      const document = paymentDocument(inside, paymentOf(row as unknown as PaymentRow), row['seq'] as number)
      const claims = claimsIn(agentId, document).map(
        ({ _id }): ClaimDocument => ({ _id, agent_id: agentId, row: document._id, at: 0 }),
      )
      return { payments: [document], payment_claims: claims }
    },
  }
}

function purses({ agentId }: Inside): Kind {
  return {
    name: 'test purses',
    table: 'test_purses',
    select: 'SELECT purse, left_over FROM test_purses',
    key: { purse: 'purse' },
    documents: (row) => {
      const { purse = '', left_over: left = '' } = row as Record<string, string>
      const _id = `${agentId}/${hashOf(purse)}`
      return { test_purses: [{ _id, agent_id: agentId, version: 0, left } satisfies PurseDocument] }
    },
  }
}

function transfers({ agentId }: Inside): Kind {
  return {
    name: 'test transfers',
    table: 'test_transfers',
    select: 'SELECT nonce_key, purse, atomic, tx_hash FROM test_transfers',
    key: { nonce_key: 'nonce_key' },
    documents: (row) => {
      const { nonce_key: nonceKey = '', purse, atomic, tx_hash: txHash } = row as Record<string, string>
      const body = JSON.stringify({ nonceKey, purse, atomic, txHash })
      const _id = `${agentId}/${hashOf(nonceKey)}`
      return {
        test_transfers: [{ _id, agent_id: agentId, move: 'migrated', body } satisfies TransferDocument],
      }
    },
  }
}
