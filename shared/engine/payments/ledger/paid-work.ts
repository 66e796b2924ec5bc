import type { PaymentRecord } from '../../store/payment-store.ts'

/** What the payments must know of the tasks that are paid, and may do with them. */
export interface PaidWork {
  /** The settlement is known: what waited for it may run. Nothing to do where it does not wait, or is not there yet. */
  settled(payment: PaymentRecord): Promise<void>
  /** The settlement has failed: what waited for it does not run. */
  failed(payment: PaymentRecord): Promise<void>
  /**
   * What became of the work: `under way` also while it waits or is paused; `none` where no task knows the payment;
   * `failed`, `rejected`, `canceled` are ends without a result.
   */
  look(
    payment: PaymentRecord,
  ): Promise<'under way' | 'completed' | 'failed' | 'rejected' | 'canceled' | 'none'>
}
