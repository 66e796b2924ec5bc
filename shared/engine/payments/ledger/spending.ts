import { ownsFor, subjectOf } from '@parley/kit/auth/caller'
import { millisOf } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentState, PaymentStore } from '../../store/payment-store.ts'

/** An amount that an owner paid on a day (UTC), in atomic units. */
export interface Spending extends Pick<PaymentRecord, 'owner' | 'sandbox'> {
  day: string
  terms: PaymentRecord['terms']
  atomic: bigint
}

/** The states of payments that were settled and not refunded. */
const paidStates: readonly PaymentState[] = ['settled', 'spent', 'earned']

/** Rows per read, and the number of rows that one request examines. */
const [pageSize, examinedMax] = [500, 20_000]
/** A payment may be settled later than it was created. */
const settledWithinMs = 86_400_000

/**
 * Adds up the settled payments that were not refunded, per owner, asset and day of settlement. Payments are read from the newest
 * one; beyond 20,000 payments, earlier ones are missing.
 * @param from the first day, such as 2026-11-22
 * @param to the last day
 */
export async function spendingBetween(
  store: PaymentStore,
  { from, to, owner }: { from: string; to: string; owner?: string | undefined },
): Promise<Spending[]> {
  const sums = new Map<string, Spending>()
  const oldest = Date.parse(from) - settledWithinMs
  let cursor: number | undefined
  for (let examined = 0; examined < examinedMax; examined += pageSize) {
    const { items, nextCursor } = await store.listPayments({ states: paidStates, limit: pageSize, cursor })
    for (const payment of items) {
      const day = payment.completedAt?.slice(0, 10) ?? ''
      const isVisible = owner === undefined || ownsFor({ id: owner }, payment.owner)
      if (isVisible && day >= from && day <= to) add(sums, day, payment)
    }
    const last = items.at(-1)
    cursor = nextCursor
    if (cursor === undefined || last === undefined || millisOf(last.createdAt) < oldest) break
  }
  return [...sums.values()]
}

function add(sums: Map<string, Spending>, day: string, { terms, sandbox, ...payment }: PaymentRecord): void {
  const owner = subjectOf(payment.owner)
  const key = JSON.stringify([day, owner, terms.network, terms.asset, sandbox])
  const atomic = (sums.get(key)?.atomic ?? 0n) + BigInt(terms.atomic)
  sums.set(key, { day, owner, sandbox, terms, atomic })
}
