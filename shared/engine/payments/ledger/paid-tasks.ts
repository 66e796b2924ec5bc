import type { PaymentRecord } from '../../store/payment-store.ts'

/** The tasks that payments pay for. */
export interface PaidTasks {
  /** The payment is settled: its waiting task may run. Does nothing if no task waits for it. */
  onSettled(payment: PaymentRecord): Promise<void>
  /** The payment failed: its waiting task does not run. */
  onFailed(payment: PaymentRecord): Promise<void>
  /**
   * The state of the paid task. `in progress` includes queued and paused tasks; `none` means that no task
   * refers to the payment. `failed`, `rejected` and `canceled` are terminal states without a result.
   */
  outcomeOf(
    payment: PaymentRecord,
  ): Promise<'in progress' | 'completed' | 'failed' | 'rejected' | 'canceled' | 'none'>
}
