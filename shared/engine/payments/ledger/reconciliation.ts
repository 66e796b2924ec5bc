import type { Log } from '@parley/kit/process/log'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentState } from '../../store/payment-store.ts'
import type { Collector } from './collector.ts'
import type { Ledger } from './ledger.ts'
import type { PaidWork } from './paid-work.ts'
import { noTask } from './payment-transitions.ts'

interface WatchParts {
  ledger: Ledger
  collector: Collector
  work: PaidWork
  log: Log
  /** Other processes watch the same rows. */
  shared: boolean
  /** How often rows that are due are looked at. Default 1 s. */
  everyMs?: number
}

const batch = 100
/** So many that a facilitator which does not answer for all of its payments hides no others. */
const dueMax = 1000
/** Look-ups at the same time: each may wait for a facilitator that does not answer. */
const atOnce = 10
const removeEveryMs = 60 * 60 * 1000
const unpaidKeptMs = 30 * 24 * 60 * 60 * 1000

/** Looks at every payment that somebody has to look at again, until nothing more can happen to it by itself. */
export class PaymentWatch implements Disposable {
  readonly #parts: WatchParts
  #timer: NodeJS.Timeout | undefined
  #running = false
  #over = false
  #removeAt = 0
  readonly #underWay = new Set<string>()

  constructor(parts: WatchParts) {
    this.#parts = parts
  }

  /**
   * What an earlier process left behind: claims without a verification are dropped, settlements without an answer become
   * `unknown`, paid work that is not there is orphaned. To be called before anybody can pay, in a store that is ours alone.
   */
  async recover(): Promise<void> {
    for (const state of ['claimed', 'settling', 'spent'] as const)
      for await (const record of this.#all(state)) await this.#look(record)
  }

  start(): void {
    this.#timer = setInterval(() => void this.look(), this.#parts.everyMs ?? 1000)
    this.#timer.unref()
    void this.look()
  }

  /** One round; never rejects. */
  async look(): Promise<void> {
    if (this.#running) return
    this.#running = true
    try {
      const due = await this.#parts.ledger.store.listDuePayments(Date.now(), dueMax)
      for (const record of due) {
        // Only a look-up waits for others; what is told by the store alone is done in its turn, however many of them hang.
        if (record.state !== 'unknown') await this.#lookQuietly(record)
        else if (this.#underWay.size < atOnce && !this.#underWay.has(record.id)) this.#begin(record)
      }
      await this.#removeOld()
    } catch (error) {
      if (!this.#over) this.#parts.log.error({ err: error }, 'payments could not be looked at')
    } finally {
      this.#running = false
    }
  }

  #begin(record: PaymentRecord): void {
    this.#underWay.add(record.id)
    void this.#lookQuietly(record).finally(() => this.#underWay.delete(record.id))
  }

  [Symbol.dispose](): void {
    this.#over = true
    clearInterval(this.#timer)
  }

  async #lookQuietly(record: PaymentRecord): Promise<void> {
    try {
      await this.#look(record)
    } catch (error) {
      if (!this.#over)
        this.#parts.log.error({ err: error, payment_id: record.id }, 'payment could not be looked at')
    }
  }

  async #look(record: PaymentRecord): Promise<void> {
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
        await this.#parts.work.failed(record)
        await ledger.change(record, { kind: 'told' })
        return
      case 'settled':
        await ledger.change(record, { kind: 'orphan', reason: 'unspent' })
        return
      case 'spent':
        return this.#spent(record)
      default:
    }
  }

  /** Two look-ups at the same time would settle twice: one would be refused, and its gas lost. */
  async #lookUp(record: PaymentRecord): Promise<void> {
    const { ledger, collector, shared } = this.#parts
    const ours = shared ? await ledger.changeAlone(record, { kind: 'ask' }) : record
    if (ours !== undefined) await collector.lookUp(ours)
  }

  /** The task that it pays for has ended. */
  async ended(id: string): Promise<void> {
    const payment = await this.#parts.ledger.store.loadPayment(id)
    if (payment?.state === 'spent') await this.#spent(payment)
    // Its task was so late that it was taken for one that never came.
    if (payment?.state !== 'orphaned' || payment.reason !== noTask) return
    if ((await this.#parts.work.look(payment)) === 'completed')
      await this.#parts.ledger.change(payment, { kind: 'earn' })
  }

  /** Earned or orphaned where its task has ended; else it waits. */
  async #spent(record: PaymentRecord): Promise<void> {
    const { ledger, work } = this.#parts
    const state = await work.look(record)
    if (state === 'under way') {
      await work.settled(record)
      await ledger.change(record, { kind: 'wait' })
    } else if (state === 'completed') await ledger.change(record, { kind: 'earn' })
    // A task that begins just now makes sure of its payment: one of the two is first.
    else if (state === 'none') await ledger.changeAlone(record, { kind: 'orphan', reason: noTask })
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

  async #removeOld(): Promise<void> {
    if (Date.now() < this.#removeAt) return
    this.#removeAt = Date.now() + removeEveryMs
    const before = timestampOf((Date.now() - unpaidKeptMs) * 1000)
    while ((await this.#parts.ledger.store.removeUnpaid(before, batch)) === batch);
  }
}
