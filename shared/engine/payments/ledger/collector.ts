import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import type { PaymentRecord } from '../../store/payment-store.ts'
import type { Facilitator, LookedUp, Offered, Settlement } from '../facilitators/facilitator.ts'
import { PaymentRefused } from '../x402/payment-refused.ts'
import type { Ledger } from './ledger.ts'
import type { PaidWork } from './paid-work.ts'

export interface CollectorOptions {
  ledger: Ledger
  facilitator: Facilitator
  work: PaidWork
  log: Log
  /** Longest wait for a verification. Default 10 s. */
  verifyTimeoutMs?: number
  /** Longest wait of the payer for a settlement; the settlement itself may take longer (spec/payments.md#settlement). */
  decideTimeoutMs?: number
  /** Longest wait of ours for one answer of the facilitator to a settlement. Default 60 s. */
  settleTimeoutMs?: number
}

/** The settings have changed meanwhile. */
const otherMoney: Settlement = { state: 'unknown', reason: 'other_facilitator' }

/** Claimed → verified → settled: the way of every payment, and the only place that asks the facilitator to move money. */
export class Collector {
  readonly #options: Required<CollectorOptions>
  readonly #stopping = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()

  constructor(options: CollectorOptions) {
    this.#options = { verifyTimeoutMs: 10_000, decideTimeoutMs: 10_000, settleTimeoutMs: 60_000, ...options }
  }

  /**
   * Collects a claimed payment. Resolves with the row as it stands when it is decided, or after 10 s.
   * @throws PaymentRefused when it is not good (nothing moved), ParleyError Unavailable when nobody can tell
   */
  async collect(claimed: PaymentRecord): Promise<PaymentRecord> {
    const { ledger, decideTimeoutMs } = this.#options
    await this.#verify(claimed)
    // On the disk before anybody is asked: whatever happens now, it is known that money may have moved.
    // Alone: where this took too long, the session may be claimed for another transfer by now.
    const settling = await ledger.changeAlone(claimed, { kind: 'settle' })
    if (settling === undefined) throw new PaymentRefused('invalid_exact_evm_nonce_already_used')
    const settled = this.#settle(settling)
    this.#keep(settled)
    const patience = new AbortController()
    try {
      const late = delay(decideTimeoutMs, settling, { signal: patience.signal })
      return await Promise.race([settled, late])
    } finally {
      patience.abort()
    }
  }

  /** Asks again what became of a settlement without an answer. */
  async lookUp(record: PaymentRecord): Promise<void> {
    // Who moves test money knows nothing of other money, and would move its own.
    const isKnown = record.sandbox === this.#options.facilitator.sandbox
    const settlement = isKnown ? await this.#lookedUp(offeredOf(record)) : otherMoney
    await this.#decide(record, settlement)
  }

  /** What an operator has found out. */
  decide(record: PaymentRecord, settlement: Settlement): Promise<PaymentRecord> {
    return this.#decide(record, settlement)
  }

  /** Settlements that are under way may end; those that take longer are looked up at the next start. */
  async drain(limitMs: number): Promise<void> {
    const patience = new AbortController()
    const limit = delay(limitMs, undefined, { signal: patience.signal }).catch(() => {})
    await Promise.race([Promise.allSettled(this.#underWay), limit])
    patience.abort()
    this.#stopping.abort(new Error('the agent is stopping'))
    await Promise.allSettled(this.#underWay)
  }

  async #verify(claimed: PaymentRecord): Promise<void> {
    const { ledger, facilitator, verifyTimeoutMs, log } = this.#options
    let refused: string | undefined
    try {
      const verified = await facilitator.verify(offeredOf(claimed), this.#within(verifyTimeoutMs))
      refused = verified.valid ? undefined : verified.reason
    } catch (error) {
      log.warn({ err: error, payment_id: claimed.id }, 'payment could not be verified')
      await ledger.release(claimed, 'not verified')
      throw new ParleyError('Unavailable', {
        message: 'The payment cannot be verified now; nothing was taken',
        data: { reason: 'facilitator' },
        headers: { 'retry-after': '5' },
        cause: error,
      })
    }
    if (refused === undefined) return
    await ledger.release(claimed, refused)
    throw new PaymentRefused(refused)
  }

  async #settle(settling: PaymentRecord): Promise<PaymentRecord> {
    const { facilitator, settleTimeoutMs } = this.#options
    const settlement = await facilitator.settle(offeredOf(settling), this.#within(settleTimeoutMs))
    return this.#decide(settling, settlement)
  }

  async #lookedUp(offered: Offered): Promise<Settlement> {
    const { facilitator, settleTimeoutMs } = this.#options
    const seen: LookedUp = await facilitator.lookUp(offered, this.#within(settleTimeoutMs))
    if (seen.state !== 'open') return seen
    const settlement = await facilitator.settle(offered, this.#within(settleTimeoutMs))
    // The first attempt may still be on its way.
    return settlement.state === 'failed' ? { state: 'unknown', reason: settlement.reason } : settlement
  }

  /** What waits for a failed payment ends before the payment does: a crash between the two asks again. */
  async #decide(record: PaymentRecord, settlement: Settlement): Promise<PaymentRecord> {
    const { ledger, work } = this.#options
    if (settlement.state === 'failed') await work.failed({ ...record, reason: settlement.reason })
    const done = await ledger.change(record, changeOf(settlement))
    const now = 'record' in done ? done.record : 'refused' in done ? (done.refused ?? record) : record
    if (now.txHash === undefined) return now
    await work.settled(now)
    return now.state === 'spent' ? this.#ended(now) : now
  }

  /** Settled when its task had ended already: canceled while it waited. One that is not there may be about to be made. */
  async #ended(spent: PaymentRecord): Promise<PaymentRecord> {
    const { ledger, work } = this.#options
    const state = await work.look(spent)
    if (state !== 'failed' && state !== 'rejected' && state !== 'canceled') return spent
    const done = await ledger.change(spent, { kind: 'orphan', reason: `task_${state}` })
    return 'record' in done ? done.record : spent
  }

  #within(ms: number): AbortSignal {
    return AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(ms)])
  }

  /** Goes on when nobody waits for it any more. */
  #keep(settled: Promise<PaymentRecord>): void {
    const kept = settled.catch((error: unknown) => {
      this.#options.log.error(
        { err: error },
        'the outcome of a settlement could not be kept; it is looked up again',
      )
    })
    this.#underWay.add(kept)
    void kept.finally(() => this.#underWay.delete(kept))
  }
}

function changeOf(settlement: Settlement) {
  if (settlement.state === 'unknown') return { kind: 'no-answer', reason: settlement.reason } as const
  if (settlement.state === 'failed') return { kind: 'failed', reason: settlement.reason } as const
  return { kind: 'settled', txHash: settlement.txHash, payer: settlement.payer } as const
}

function offeredOf({ id, terms, transfer, nonceKey }: PaymentRecord): Offered {
  if (transfer === undefined || nonceKey === undefined) throw new Error(`payment ${id} holds no transfer`)
  return { terms, transfer, nonceKey }
}
