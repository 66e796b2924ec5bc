import type { PaymentRecord } from '../../store/payment-store.ts'
import type { Ledger } from './ledger.ts'
import { noTask, spentRecheckMs } from './payment-transitions.ts'

/** Half of the interval after which other processes check a payment, because their clocks may differ. */
const freshMs = spentRecheckMs / 2
/** A concurrent update ends an attempt. More attempts than this indicate a bug. */
const attemptsMax = 20

/**
 * Returns whether the payments still pay for the task. Call it before the task's work starts: if the process
 * stalled between payment and task, the payment may have been orphaned. An orphaned payment is reclaimed. A
 * payment that was refunded or spent on another task is not valid.
 */
export async function isStillPaid(ledger: Ledger, taskId: string, ids: readonly string[]): Promise<boolean> {
  for (const id of ids) {
    if (!(await paysFor(ledger, taskId, id))) return false
  }
  return true
}

async function paysFor(ledger: Ledger, taskId: string, id: string): Promise<boolean> {
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const payment = await ledger.store.loadPayment(id)
    // The payment is not settled. The task waits for it, or requests another payment if it fails.
    if (payment?.txHash === undefined) return true
    if (payment.taskId !== taskId || !(payment.state === 'spent' || isReclaimable(payment))) return false
    if (isFresh(payment)) return true
    // A process that concurrently orphans or refunds the payment either commits first or causes a conflict.
    const kind = payment.state === 'spent' ? 'recheck' : 'reclaim'
    if ((await ledger.changeIfUnmodified(payment, { kind })) !== undefined) return true
  }
  return false
}

/** Returns true if no process can have looked for the task since the payment was spent. */
const isFresh = ({ state, dueAt = 0 }: PaymentRecord) => state === 'spent' && dueAt - Date.now() > freshMs

const isReclaimable = ({ state, reason }: PaymentRecord) => state === 'orphaned' && reason === noTask
