import type { PaymentRecord } from '../../store/payment-store.ts'

/** The tasks that payments pay for. */
export interface PaidTasks {
  /** Lets the waiting task run, because its payment is settled. Does nothing if no task is waiting. */
  onSettled(payment: PaymentRecord): Promise<void>
  /** Keeps the waiting task from running, because its payment failed. */
  onFailed(payment: PaymentRecord): Promise<void>
  /**
   * Returns the state of the paid task. `in progress` includes queued and paused tasks. `none` means that no
   * task refers to the payment. `failed`, `rejected` and `canceled` are terminal states without a result.
   */
  outcomeOf(
    payment: PaymentRecord,
  ): Promise<'in progress' | 'completed' | 'failed' | 'rejected' | 'canceled' | 'none'>
}
