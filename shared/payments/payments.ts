import type { Registry } from 'prom-client'
import type { Log } from '../process/log.ts'
import type { PaymentRecord, PaymentStore, PaymentTerms } from '../store/payment-store.ts'
import { buy, giveBack, type Purchase } from './buy.ts'
import { Collector } from './collect.ts'
import type { Facilitator } from './facilitator.ts'
import { Ledger } from './ledger.ts'
import type { PaidWork } from './paid-work.ts'
import { inTestMoney } from './sandbox.ts'
import { PaymentSessions } from './sessions.ts'
import { PaymentWatch } from './watch.ts'
import type { Presented } from './x-payment.ts'

export interface PaymentsOptions {
  store: PaymentStore
  facilitator: Facilitator
  work: PaidWork
  log: Log
  registry: Registry
  agentId: string
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

  constructor(options: PaymentsOptions) {
    const { facilitator, work, log } = options
    const { decideTimeoutMs, settleTimeoutMs, watchEveryMs } = options
    this.sandbox = facilitator.sandbox
    this.#facilitator = facilitator
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
    this.#watch = new PaymentWatch({ ledger, collector, work, log, ...often })
  }

  /** The ways to pay, as a caller is asked: in the sandbox in test money. */
  asked<T extends PaymentTerms>(prices: readonly T[]): T[] {
    return this.sandbox ? inTestMoney(prices) : [...prices]
  }

  /** See `buy`. */
  buy(wanted: Purchase, presented: Presented): Promise<PaymentRecord> {
    const { ledger, sandbox } = this
    return buy({ ledger, collector: this.#collector, sandbox }, wanted, presented)
  }

  /** See `giveBack`. */
  giveBack(payment: PaymentRecord): Promise<void> {
    return giveBack(this.ledger, payment)
  }

  /** The payment as it stands now. */
  async reload(payment: PaymentRecord): Promise<PaymentRecord> {
    return (await this.ledger.store.loadPayment(payment.id)) ?? payment
  }

  /** A task that was paid for has ended: its payments are earned or orphaned. */
  async taskEnded(paymentIds: readonly string[]): Promise<void> {
    for (const id of paymentIds) {
      const payment = await this.ledger.store.loadPayment(id)
      if (payment?.state === 'spent') await this.#watch.spent(payment)
    }
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
