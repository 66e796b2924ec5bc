import type { PaymentRecord } from '../../store/payment-store.ts'
import type { Ledger } from './ledger.ts'
import { noTask, spentAgainMs } from './payment-transitions.ts'

/** Half of the time after which others look at a payment: their clocks may differ from ours. */
const freshMs = spentAgainMs / 2
/** Races over one row end after a few rounds. */
const attemptsMax = 20

/**
 * Whether the payments still pay for the task, asked before its work begins: between payment and task a process may have
 * stood still for so long that the payment was listed for refund. One that is listed is taken off the list; one that was paid
 * back, or pays for something else by now, is none.
 */
export async function isStillPaid(ledger: Ledger, taskId: string, ids: readonly string[]): Promise<boolean> {
  for (const id of ids) {
    if (!(await stands(ledger, taskId, id))) return false
  }
  return true
}

async function stands(ledger: Ledger, taskId: string, id: string): Promise<boolean> {
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const payment = await ledger.store.loadPayment(id)
    // The task waited for one that failed, or may have, and another one was asked for.
    if (payment?.txHash === undefined) return true
    if (payment.taskId !== taskId || !(payment.state === 'spent' || isListed(payment))) return false
    if (isFresh(payment)) return true
    // Who lists it, or notes that it is paid back, in the same moment is before this change or finds it made.
    const kind = payment.state === 'spent' ? 'wait' : 'reclaim'
    if ((await ledger.changeAlone(payment, { kind })) !== undefined) return true
  }
  return false
}

/** Nobody can have looked for the task before it was there. */
const isFresh = ({ state, dueAt = 0 }: PaymentRecord) => state === 'spent' && dueAt - Date.now() > freshMs

const isListed = ({ state, reason }: PaymentRecord) => state === 'orphaned' && reason === noTask
