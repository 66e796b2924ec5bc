import type { Log } from '@parley/kit/process/log'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentState } from '../../store/payment-store.ts'
import type { Collector } from './collector.ts'
import type { Ledger } from './ledger.ts'
import type { PaidTasks } from './paid-tasks.ts'
import { noTask } from './payment-transitions.ts'

interface ReconcilerParts {
  ledger: Ledger
  collector: Collector
  tasks: PaidTasks
  log: Log
  /** Whether other processes reconcile the same rows. */
  shared: boolean
  /** How often due rows are reconciled. Default 1 s. */
  intervalMs?: number
}

const batch = 100
/** Large enough that the rows of an unresponsive facilitator do not hide the others. */
const dueMax = 1000
/** Maximum number of concurrent look-ups, each of which may wait for an unresponsive facilitator. */
const lookupsMax = 10
const sweepIntervalMs = 60 * 60 * 1000
const unpaidRetentionMs = 30 * 24 * 60 * 60 * 1000

/** Reconciles every due payment until its state is final. */
export class PaymentReconciler implements Disposable {
  readonly #parts: ReconcilerParts
  #timer: NodeJS.Timeout | undefined
  #running = false
  #stopped = false
  #nextSweepAt = 0
  readonly #lookups = new Set<string>()

  constructor(parts: ReconcilerParts) {
    this.#parts = parts
  }

  /**
   * Recovers an earlier process's rows: releases unverified claims, marks unfinished settlements as
   * `unknown`, and orphans payments whose tasks do not exist. Call it before accepting payments, and only if
   * no other process uses the store.
   */
  async recover(): Promise<void> {
    for (const state of ['claimed', 'settling', 'spent'] as const)
      for await (const record of this.#all(state)) await this.#reconcile(record)
  }

  start(): void {
    this.#timer = setInterval(() => void this.reconcileDue(), this.#parts.intervalMs ?? 1000)
    this.#timer.unref()
    void this.reconcileDue()
  }

  /** Runs one round. Never rejects. */
  async reconcileDue(): Promise<void> {
    if (this.#running) return
    this.#running = true
    try {
      const due = await this.#parts.ledger.store.listDuePayments(Date.now(), dueMax)
      for (const record of due) {
        // Only look-ups wait for the facilitator, so they run in the background. All other rows need only the
        // store.
        if (record.state !== 'unknown') await this.#tryReconcile(record)
        else if (this.#lookups.size < lookupsMax && !this.#lookups.has(record.id)) this.#startLookup(record)
      }
      await this.#sweep()
    } catch (error) {
      if (!this.#stopped) this.#parts.log.error({ err: error }, 'could not reconcile payments')
    } finally {
      this.#running = false
    }
  }

  #startLookup(record: PaymentRecord): void {
    this.#lookups.add(record.id)
    void this.#tryReconcile(record).finally(() => this.#lookups.delete(record.id))
  }

  [Symbol.dispose](): void {
    this.#stopped = true
    clearInterval(this.#timer)
  }

  async #tryReconcile(record: PaymentRecord): Promise<void> {
    try {
      await this.#reconcile(record)
    } catch (error) {
      if (!this.#stopped)
        this.#parts.log.error({ err: error, payment_id: record.id }, 'could not reconcile payment')
    }
  }

  async #reconcile(record: PaymentRecord): Promise<void> {
    const { ledger } = this.#parts
    switch (record.state) {
      case 'open':
        await ledger.change(record, { kind: 'expire' })
        return
      case 'claimed':
        return ledger.release(record, 'the process ended')
      case 'settling':
        await ledger.change(record, { kind: 'no-answer', reason: 'the process ended' })
        return
      case 'unknown':
        return this.#lookUp(record)
      case 'failed':
        await this.#parts.tasks.onFailed(record)
        await ledger.change(record, { kind: 'notified' })
        return
      case 'settled':
        await ledger.change(record, { kind: 'orphan', reason: 'unspent' })
        return
      case 'spent':
        return this.#reconcileSpent(record)
      default:
    }
  }

  /** Two concurrent look-ups would settle twice. The second settlement would fail and waste its gas. */
  async #lookUp(record: PaymentRecord): Promise<void> {
    const { ledger, collector, shared } = this.#parts
    const claimed = shared ? await ledger.changeIfUnmodified(record, { kind: 'start-lookup' }) : record
    if (claimed !== undefined) await collector.lookUp(claimed)
  }

  /** Reconciles the payment for a task that has ended. */
  async taskEnded(id: string): Promise<void> {
    const payment = await this.#parts.ledger.store.loadPayment(id)
    if (payment?.state === 'spent') await this.#reconcileSpent(payment)
    // The payment was orphaned because its task was created late.
    if (payment?.state !== 'orphaned' || payment.reason !== noTask) return
    if ((await this.#parts.tasks.outcomeOf(payment)) === 'completed')
      await this.#parts.ledger.change(payment, { kind: 'earn' })
  }

  /** Marks the payment as earned or orphaned if its task has ended. Otherwise schedules the next check. */
  async #reconcileSpent(record: PaymentRecord): Promise<void> {
    const { ledger, tasks } = this.#parts
    const state = await tasks.outcomeOf(record)
    if (state === 'in progress') {
      await tasks.onSettled(record)
      await ledger.change(record, { kind: 'recheck' })
    } else if (state === 'completed') await ledger.change(record, { kind: 'earn' })
    // A task that starts concurrently confirms its payment, so only one of the two commits succeeds.
    else if (state === 'none') await ledger.changeIfUnmodified(record, { kind: 'orphan', reason: noTask })
    else await ledger.change(record, { kind: 'orphan', reason: `task_${state}` })
  }

  async *#all(state: PaymentState): AsyncGenerator<PaymentRecord> {
    let cursor: number | undefined = 0
    while (cursor !== undefined) {
      const page: { items: PaymentRecord[]; nextCursor?: number } =
        await this.#parts.ledger.store.listByState({
          state,
          limit: batch,
          cursor,
        })
      yield* page.items
      cursor = page.nextCursor
    }
  }

  async #sweep(): Promise<void> {
    if (Date.now() < this.#nextSweepAt) return
    this.#nextSweepAt = Date.now() + sweepIntervalMs
    const before = timestampOf((Date.now() - unpaidRetentionMs) * 1000)
    while ((await this.#parts.ledger.store.removeUnpaid(before, batch)) === batch);
  }
}
