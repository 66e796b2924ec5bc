import type { Log } from '@parley/kit/process/log'
import type { Registry } from 'prom-client'
import type { PaymentRecord, PaymentStore, PaymentTerms } from '../store/payment-store.ts'
import type { Facilitator, Settlement } from './facilitators/facilitator.ts'
import { inTestMoney } from './facilitators/sandbox.ts'
import { Collector } from './ledger/collector.ts'
import { Ledger } from './ledger/ledger.ts'
import type { PaidWork } from './ledger/paid-work.ts'
import { type Bought, buy, giveBack, type Purchase } from './ledger/purchase.ts'
import { PaymentWatch } from './ledger/reconciliation.ts'
import { PaymentSessions } from './ledger/sessions.ts'
import { isStillPaid } from './ledger/still-paid.ts'
import type { Presented } from './x402/presented-payment.ts'

export interface PaymentsOptions {
  store: PaymentStore
  facilitator: Facilitator
  work: PaidWork
  log: Log
  registry: Registry
  agentId: string
  /** Other processes have the same store. */
  shared: boolean
  /** See `CollectorOptions`. */
  decideTimeoutMs?: number | undefined
  settleTimeoutMs?: number | undefined
  watchEveryMs?: number | undefined
}

/** Everything that an agent with a price has and others do not. */
export class Payments implements AsyncDisposable {
  readonly sandbox: boolean
  readonly sessions: PaymentSessions
  readonly ledger: Ledger
  readonly #collector: Collector
  readonly #watch: PaymentWatch
  readonly #facilitator: Facilitator
  readonly #work: PaidWork
  readonly #log: Log

  constructor(options: PaymentsOptions) {
    const { facilitator, work, log, shared } = options
    const { decideTimeoutMs, settleTimeoutMs, watchEveryMs } = options
    this.sandbox = facilitator.sandbox
    this.#facilitator = facilitator
    this.#work = work
    this.#log = log
    const ledger = new Ledger(options)
    this.ledger = ledger
    this.#collector = new Collector({
      ledger,
      facilitator,
      work,
      log,
      ...(decideTimeoutMs !== undefined && { decideTimeoutMs }),
      ...(settleTimeoutMs !== undefined && { settleTimeoutMs }),
    })
    const collector = this.#collector
    this.sessions = new PaymentSessions({ ledger, collector, sandbox: this.sandbox })
    const often = watchEveryMs === undefined ? {} : { everyMs: watchEveryMs }
    this.#watch = new PaymentWatch({ ledger, collector, work, log, shared, ...often })
  }

  /** The ways to pay, as a caller is asked: in the sandbox in test money. */
  asked<T extends PaymentTerms>(prices: readonly T[]): T[] {
    return this.sandbox ? inTestMoney(prices) : [...prices]
  }

  /** See `buy`. */
  buy(wanted: Purchase, presented: Presented): Promise<Bought> {
    const { ledger, sandbox } = this
    return buy({ ledger, collector: this.#collector, sandbox }, wanted, presented)
  }

  /** See `giveBack`. */
  giveBack(bought: Bought): Promise<void> {
    return giveBack(this.ledger, bought)
  }

  /**
   * What waits for the payment is in the store now: it is told where the settlement became known in between. Never rejects:
   * what is missed here is found by the watch.
   */
  async bound(payment: PaymentRecord): Promise<void> {
    try {
      const now = await this.ledger.store.loadPayment(payment.id)
      if (now?.txHash !== undefined) await this.#work.settled(now)
      else if (now?.state === 'failed') await this.#work.failed(now)
    } catch (error) {
      this.#lookAgain(error, payment.id)
    }
  }

  /** What an operator has found out of a settlement that nobody answered for. */
  decide(payment: PaymentRecord, settlement: Settlement): Promise<PaymentRecord> {
    return this.#collector.decide(payment, settlement)
  }

  /** See `isStillPaid`. */
  isStillPaid(taskId: string, paymentIds: readonly string[]): Promise<boolean> {
    return isStillPaid(this.ledger, taskId, paymentIds)
  }

  /** A task that was paid for has ended: its payments are earned or orphaned. What is missed here is found by the watch. */
  taskEnded(paymentIds: readonly string[]): void {
    for (const id of paymentIds) this.end([id]).catch((error: unknown) => this.#lookAgain(error, id))
  }

  /** The same, for who must know that it is done. */
  async end(paymentIds: readonly string[]): Promise<void> {
    for (const id of paymentIds) await this.#watch.ended(id)
  }

  #lookAgain(error: unknown, id: string): void {
    this.#log.warn({ err: error, payment_id: id }, 'payment will be looked at again')
  }

  /** Before the agent listens. */
  recover(): Promise<void> {
    return this.#watch.recover()
  }

  start(): void {
    this.#watch.start()
  }

  /** Settlements under way may end. */
  drain(limitMs: number): Promise<void> {
    this.#watch[Symbol.dispose]()
    return this.#collector.drain(limitMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain(0)
    await this.#facilitator[Symbol.asyncDispose]()
  }
}
