import type { Log } from '@parley/kit/process/log'
import type { Registry } from 'prom-client'
import type { PaymentRecord, PaymentStore, PaymentTerms } from '../store/payment-store.ts'
import type { Facilitator, Settlement } from './facilitators/facilitator.ts'
import { sandboxTerms } from './facilitators/sandbox.ts'
import { Collector } from './ledger/collector.ts'
import { Ledger } from './ledger/ledger.ts'
import type { PaidTasks } from './ledger/paid-tasks.ts'
import { buy, type Purchase, type PurchaseResult, releasePurchase } from './ledger/purchase.ts'
import { PaymentReconciler } from './ledger/reconciliation.ts'
import { PaymentSessions } from './ledger/sessions.ts'
import { isStillPaid } from './ledger/still-paid.ts'
import { TransferWatcher } from './ledger/transfer-watcher.ts'
import { type TransferPrice, Transfers } from './ledger/transfers.ts'
import type { PresentedPayment } from './x402/presented-payment.ts'

export interface PaymentsOptions {
  store: PaymentStore
  facilitator: Facilitator
  tasks: PaidTasks
  log: Log
  registry: Registry
  agentId: string
  /** Whether other processes use the same store. */
  shared: boolean
  /** The payment options for which the author accepts plain transfers. Default: none. */
  transferPrices?: readonly TransferPrice[] | undefined
  /** See `CollectorOptions`. */
  decideTimeoutMs?: number | undefined
  settleTimeoutMs?: number | undefined
  reconcileIntervalMs?: number | undefined
  transferIntervalMs?: number | undefined
}

/** The payments of an agent that charges for its tasks. */
export class Payments implements AsyncDisposable {
  readonly sandbox: boolean
  readonly sessions: PaymentSessions
  readonly ledger: Ledger
  readonly transfers: Transfers
  readonly #collector: Collector
  readonly #reconciler: PaymentReconciler
  readonly #watcher: TransferWatcher | undefined
  readonly #facilitator: Facilitator
  readonly #tasks: PaidTasks
  readonly #log: Log

  constructor(options: PaymentsOptions) {
    const { facilitator, tasks, log, shared } = options
    const { decideTimeoutMs, settleTimeoutMs, reconcileIntervalMs, transferIntervalMs } = options
    this.sandbox = facilitator.sandbox
    this.#facilitator = facilitator
    this.#tasks = tasks
    this.#log = log
    const ledger = new Ledger(options)
    this.ledger = ledger
    this.#collector = new Collector({
      ledger,
      facilitator,
      tasks,
      log,
      ...(decideTimeoutMs !== undefined && { decideTimeoutMs }),
      ...(settleTimeoutMs !== undefined && { settleTimeoutMs }),
    })
    const collector = this.#collector
    this.sessions = new PaymentSessions({ ledger, collector, sandbox: this.sandbox })
    const source = facilitator.transfers
    const { transferPrices = [] } = options
    if (source === undefined && transferPrices.length > 0)
      log.warn('PAYMENT_RPC_URL is not set: no direct transfers are offered (prices with transfers: true)')
    this.transfers = new Transfers({ ledger, source, prices: transferPrices, log })
    this.#watcher =
      source &&
      new TransferWatcher({
        store: options.store,
        source,
        transfers: this.transfers,
        log,
        shared,
        intervalMs: transferIntervalMs,
      })
    const interval = reconcileIntervalMs === undefined ? {} : { intervalMs: reconcileIntervalMs }
    this.#reconciler = new PaymentReconciler({ ledger, collector, tasks, log, shared, ...interval })
  }

  /** Returns the prices that the agent accepts. In the sandbox, they are in test money. */
  acceptedTerms<T extends PaymentTerms>(prices: readonly T[]): T[] {
    return this.sandbox ? sandboxTerms(prices) : [...prices]
  }

  /** See `buy`. */
  buy(purchase: Purchase, presented: PresentedPayment): Promise<PurchaseResult> {
    const { ledger, sandbox } = this
    return buy({ ledger, collector: this.#collector, sandbox }, purchase, presented)
  }

  /** See `releasePurchase`. */
  releasePurchase(result: PurchaseResult): Promise<void> {
    return releasePurchase(this.ledger, result)
  }

  /**
   * Notifies the task if its payment was decided before the task was stored. Never rejects, because
   * reconciliation repeats a failed notification.
   */
  async notifyIfDecided(payment: PaymentRecord): Promise<void> {
    try {
      const current = await this.ledger.store.loadPayment(payment.id)
      if (current?.txHash !== undefined) await this.#tasks.onSettled(current)
      else if (current?.state === 'failed') await this.#tasks.onFailed(current)
    } catch (error) {
      this.#logRetry(error, payment.id)
    }
  }

  /** Whether one of these payments is the presented one. */
  async includes(paymentIds: readonly string[], presented: PresentedPayment): Promise<boolean> {
    if (presented.kind === 'session') return paymentIds.includes(presented.sessionId)
    const { from, nonce } = presented.transfer.authorization
    const keyOf = (one: { from: string; nonce: string }) => `${one.from} ${one.nonce}`.toLowerCase()
    for (const id of paymentIds) {
      const payment = await this.ledger.store.loadPayment(id)
      if (payment?.terms.network !== presented.network) continue
      if (payment.transfer !== undefined && keyOf(payment.transfer.authorization) === keyOf({ from, nonce }))
        return true
    }
    return false
  }

  /** Records the outcome of a settlement that an operator has determined. */
  decide(payment: PaymentRecord, settlement: Settlement): Promise<PaymentRecord> {
    return this.#collector.decide(payment, settlement)
  }

  /** See `isStillPaid`. */
  isStillPaid(taskId: string, paymentIds: readonly string[]): Promise<boolean> {
    return isStillPaid(this.ledger, taskId, paymentIds)
  }

  /**
   * Marks an ended task's payments as earned or orphaned in the background. Reconciliation repeats failed
   * updates.
   */
  taskEnded(paymentIds: readonly string[]): void {
    for (const id of paymentIds)
      this.reconcileEnded([id]).catch((error: unknown) => this.#logRetry(error, id))
  }

  /** Like `taskEnded`, but resolves when the payments are updated. */
  async reconcileEnded(paymentIds: readonly string[]): Promise<void> {
    for (const id of paymentIds) await this.#reconciler.taskEnded(id)
  }

  #logRetry(error: unknown, id: string): void {
    this.#log.warn({ err: error, payment_id: id }, 'payment will be reconciled again')
  }

  /** Recovers unfinished payments. Call it before the agent accepts requests. */
  recover(): Promise<void> {
    return this.#reconciler.recover()
  }

  start(): void {
    this.#reconciler.start()
    this.#watcher?.start()
  }

  /** Waits up to the limit for settlements in progress. */
  async drain(limitMs: number): Promise<void> {
    this.#reconciler[Symbol.dispose]()
    await this.#watcher?.[Symbol.asyncDispose]()
    await this.#collector.drain(limitMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(0)
    await this.#facilitator[Symbol.asyncDispose]()
  }
}
