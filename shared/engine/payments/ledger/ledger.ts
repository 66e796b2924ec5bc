import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { timestamp } from '@parley/wire/model/timestamp'
import { Counter, type Registry } from 'prom-client'
import type { PaymentConflict, PaymentRecord, PaymentState, PaymentStore } from '../../store/payment-store.ts'
import { type PaymentChange, transition } from './payment-transitions.ts'

/** A concurrent update ends an attempt. More attempts than this indicate a bug. */
const attemptsMax = 20

export type ChangeResult =
  | { record: PaymentRecord }
  /** The transition is not allowed. Contains the current row if it still exists. */
  | { refused: PaymentRecord | undefined }
  | { conflict: PaymentConflict }

/**
 * The only class that writes payments. The transition table computes every change, and compare-and-set
 * commits it. The change then goes to the audit log, the metrics and waiting callers. Signatures and payloads
 * are never exposed.
 */
export class Ledger {
  readonly store: PaymentStore
  readonly #audit: Audit
  readonly #counter: Counter<'agent_id' | 'state'>
  readonly #agentId: string
  readonly #waiting = new Map<string, Set<() => void>>()

  constructor(parts: { store: PaymentStore; log: Log; registry: Registry; agentId: string }) {
    this.store = parts.store
    this.#audit = new Audit(parts.log)
    this.#agentId = parts.agentId
    this.#counter = new Counter({
      name: 'agent_payments_total',
      help: 'Payments that entered a state',
      labelNames: ['agent_id', 'state'],
      registers: [parts.registry],
    })
  }

  async add(record: PaymentRecord): Promise<'added' | PaymentConflict> {
    const added = await this.store.addPayment(record)
    if (added === 'added') this.#publish(record, record.state)
    return added
  }

  /** Applies the change to the current row, and retries if a concurrent update wins. */
  async change(from: PaymentRecord, change: PaymentChange): Promise<ChangeResult> {
    let record: PaymentRecord | undefined = from
    for (let attempt = 0; attempt < attemptsMax && record !== undefined; attempt += 1) {
      const next = transition(record, change, { timestamp: timestamp(), now: Date.now() })
      if (next === undefined) return { refused: record }
      const done = await this.store.commitPayment(next)
      if (done === 'committed') {
        if (next.state !== record.state) this.#publish(next, next.state)
        return { record: next }
      }
      if (done !== 'stale') return { conflict: done }
      record = await this.store.loadPayment(from.id)
    }
    return { refused: record }
  }

  /** Like `change`, but returns undefined and changes nothing if the row has been modified. */
  async changeIfUnmodified(record: PaymentRecord, change: PaymentChange): Promise<PaymentRecord | undefined> {
    const next = transition(record, change, { timestamp: timestamp(), now: Date.now() })
    if (next === undefined || (await this.store.commitPayment(next)) !== 'committed') return undefined
    if (next.state !== record.state) this.#publish(next, next.state)
    return next
  }

  /**
   * Releases a refused transfer that moved no money. A direct payment is removed; a session can be paid
   * again.
   */
  async release(record: PaymentRecord, reason: string): Promise<void> {
    if (record.kind === 'session') await this.changeIfUnmodified(record, { kind: 'release' })
    else await this.store.removePayment(record.id, record.version)
    this.refused(record.owner, record.id, reason)
  }

  /** Counts a refused payment and writes it to the audit log. */
  refused(owner: string | undefined, target: string, reason: string): void {
    this.#counter.inc({ agent_id: this.#agentId, state: 'refused' })
    this.#audit.record({ who: owner, action: 'payment.refused', target, allowed: false, reason })
  }

  /** Resolves when this process next changes the row, or when the signal aborts. */
  nextChange(id: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(id) ?? new Set()
      this.#waiting.set(id, waiting)
      const done = () => {
        waiting.delete(done)
        if (waiting.size === 0 && this.#waiting.get(id) === waiting) this.#waiting.delete(id)
        signal.removeEventListener('abort', done)
        resolve()
      }
      waiting.add(done)
      if (signal.aborted) done()
      else signal.addEventListener('abort', done)
    })
  }

  #publish(record: PaymentRecord, state: PaymentState): void {
    const { id, owner, terms, txHash, reason, sandbox, taskId } = record
    this.#counter.inc({ agent_id: this.#agentId, state })
    const what = [
      `${terms.amount} ${terms.extra.name} on ${terms.network}`,
      reason,
      txHash,
      taskId && `task ${taskId}`,
    ]
    this.#audit.record({
      who: owner,
      action: `payment.${state}`,
      target: id,
      allowed: state !== 'failed',
      reason: [...what, sandbox && 'test money'].filter(Boolean).join(', '),
    })
    for (const done of this.#waiting.get(id) ?? []) done()
  }
}
