import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { timestamp } from '@parley/wire/model/timestamp'
import { Counter, type Registry } from 'prom-client'
import type { PaymentConflict, PaymentRecord, PaymentState, PaymentStore } from '../../store/payment-store.ts'
import { changed, type PaymentChange } from './payment-transitions.ts'

/** Races over one row end after a few rounds; more means that something is wrong. */
const attemptsMax = 20

export type Changed =
  | { record: PaymentRecord }
  /** The table does not know it: the row as it stands now, if it is still there. */
  | { refused: PaymentRecord | undefined }
  | { conflict: PaymentConflict }

/**
 * The only writer of payments: every change is computed by the table and committed by compare-and-set; then the audit log,
 * the metrics and those who wait hear of it. Signatures and payloads are told to nobody.
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
      help: 'Payments that came into a state',
      labelNames: ['agent_id', 'state'],
      registers: [parts.registry],
    })
  }

  async add(record: PaymentRecord): Promise<'added' | PaymentConflict> {
    const added = await this.store.addPayment(record)
    if (added === 'added') this.#tell(record, record.state)
    return added
  }

  /** Applies the change to the row as it is now, again and again while others change it at the same time. */
  async change(known: PaymentRecord, change: PaymentChange): Promise<Changed> {
    let record: PaymentRecord | undefined = known
    for (let attempt = 0; attempt < attemptsMax && record !== undefined; attempt += 1) {
      const next = changed(record, change, { timestamp: timestamp(), now: Date.now() })
      if (next === undefined) return { refused: record }
      const done = await this.store.commitPayment(next)
      if (done === 'committed') {
        if (next.state !== record.state) this.#tell(next, next.state)
        return { record: next }
      }
      if (done !== 'stale') return { conflict: done }
      record = await this.store.loadPayment(known.id)
    }
    return { refused: record }
  }

  /** As `change`, if nobody has changed the row meanwhile; undefined otherwise. */
  async changeAlone(known: PaymentRecord, change: PaymentChange): Promise<PaymentRecord | undefined> {
    const next = changed(known, change, { timestamp: timestamp(), now: Date.now() })
    if (next === undefined || (await this.store.commitPayment(next)) !== 'committed') return undefined
    if (next.state !== known.state) this.#tell(next, next.state)
    return next
  }

  /** A transfer was refused, and nothing moved: a row that was made for it alone goes, a session can be paid again. */
  async release(record: PaymentRecord, reason: string): Promise<void> {
    if (record.kind === 'session') await this.changeAlone(record, { kind: 'release' })
    else await this.store.removePayment(record.id, record.version)
    this.refused(record.owner, record.id, reason)
  }

  /** A payment that was not taken. */
  refused(owner: string | undefined, target: string, reason: string): void {
    this.#counter.inc({ agent_id: this.#agentId, state: 'refused' })
    this.#audit.decided({ who: owner, action: 'payment.refused', target, allowed: false, reason })
  }

  /** Resolves at the next change of the row that this process makes, or when the signal aborts. */
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

  #tell(record: PaymentRecord, state: PaymentState): void {
    const { id, owner, terms, txHash, reason, sandbox, taskId } = record
    this.#counter.inc({ agent_id: this.#agentId, state })
    const what = [
      `${terms.amount} ${terms.extra.name} on ${terms.network}`,
      reason,
      txHash,
      taskId && `task ${taskId}`,
    ]
    this.#audit.decided({
      who: owner,
      action: `payment.${state}`,
      target: id,
      allowed: state !== 'failed',
      reason: [...what, sandbox && 'test money'].filter(Boolean).join(', '),
    })
    for (const done of this.#waiting.get(id) ?? []) done()
  }
}
