import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import type { PaymentRecord } from '../../store/payment-store.ts'
import type { Facilitator, LookupResult, MatchedTransfer, Settlement } from '../facilitators/facilitator.ts'
import { PaymentRefused } from '../x402/payment-refused.ts'
import type { Ledger } from './ledger.ts'
import type { PaidTasks } from './paid-tasks.ts'

export interface CollectorOptions {
  ledger: Ledger
  facilitator: Facilitator
  tasks: PaidTasks
  log: Log
  /** Timeout for one verification. Default 10 s. */
  verifyTimeoutMs?: number
  /**
   * How long the payer waits for a settlement. The settlement itself may take longer
   * (spec/payments.md#settlement). Default 10 s.
   */
  decideTimeoutMs?: number
  /** Timeout for one settlement request to the facilitator. Default 60 s. */
  settleTimeoutMs?: number
}

/** The payment was made with another facilitator before the settings changed. */
const otherFacilitator: Settlement = { state: 'unknown', reason: 'other_facilitator' }

/** Verifies and settles claimed payments. No other code asks the facilitator to move money. */
export class Collector {
  readonly #options: Required<CollectorOptions>
  readonly #stopping = new AbortController()
  readonly #inProgress = new Set<Promise<unknown>>()

  constructor(options: CollectorOptions) {
    this.#options = { verifyTimeoutMs: 10_000, decideTimeoutMs: 10_000, settleTimeoutMs: 60_000, ...options }
  }

  /**
   * Collects a claimed payment. Resolves with its row once the settlement is decided, or after
   * `decideTimeoutMs`.
   * @throws PaymentRefused when the payment is invalid (no money moved)
   * @throws ParleyError Unavailable when the payment cannot be verified
   */
  async collect(claimed: PaymentRecord): Promise<PaymentRecord> {
    const { ledger, decideTimeoutMs } = this.#options
    await this.#verify(claimed)
    // The row is stored before the facilitator is called, so that after a crash it shows that money may have
    // moved. The commit fails if the row changed during a slow verification, because the session may have
    // been claimed for another transfer.
    const settling = await ledger.changeIfUnmodified(claimed, { kind: 'settle' })
    if (settling === undefined) throw new PaymentRefused('invalid_exact_evm_nonce_already_used')
    const settled = this.#settle(settling)
    this.#track(settled)
    const deadline = new AbortController()
    try {
      const timeout = delay(decideTimeoutMs, settling, { signal: deadline.signal })
      return await Promise.race([settled, timeout])
    } finally {
      deadline.abort()
    }
  }

  /** Retries a settlement whose outcome is unknown. */
  async lookUp(record: PaymentRecord): Promise<void> {
    // The sandbox cannot look up real transfers and would move test money instead.
    const isSameFacilitator = record.sandbox === this.#options.facilitator.sandbox
    const settlement = isSameFacilitator
      ? await this.#lookUpOrSettle(matchedTransferOf(record))
      : otherFacilitator
    await this.#decide(record, settlement)
  }

  /** Records the outcome that an operator has determined. */
  decide(record: PaymentRecord, settlement: Settlement): Promise<PaymentRecord> {
    return this.#decide(record, settlement)
  }

  /** Waits up to the limit for settlements in progress. The others are looked up after the next start. */
  async drain(limitMs: number): Promise<void> {
    const deadline = new AbortController()
    const limit = delay(limitMs, undefined, { signal: deadline.signal }).catch(() => {})
    await Promise.race([Promise.allSettled(this.#inProgress), limit])
    deadline.abort()
    this.#stopping.abort(new Error('the agent is stopping'))
    await Promise.allSettled(this.#inProgress)
  }

  async #verify(claimed: PaymentRecord): Promise<void> {
    const { ledger, facilitator, verifyTimeoutMs, log } = this.#options
    let refusal: string | undefined
    try {
      const verified = await facilitator.verify(matchedTransferOf(claimed), this.#within(verifyTimeoutMs))
      refusal = verified.valid ? undefined : verified.reason
    } catch (error) {
      log.warn({ err: error, payment_id: claimed.id }, 'could not verify payment')
      await ledger.release(claimed, 'not verified')
      throw new ParleyError('Unavailable', {
        message: 'The payment cannot be verified at the moment; no money was taken',
        data: { reason: 'facilitator' },
        headers: { 'retry-after': '5' },
        cause: error,
      })
    }
    if (refusal === undefined) return
    await ledger.release(claimed, refusal)
    throw new PaymentRefused(refusal)
  }

  async #settle(settling: PaymentRecord): Promise<PaymentRecord> {
    const { facilitator, settleTimeoutMs } = this.#options
    const settlement = await facilitator.settle(matchedTransferOf(settling), this.#within(settleTimeoutMs))
    return this.#decide(settling, settlement)
  }

  async #lookUpOrSettle(offered: MatchedTransfer): Promise<Settlement> {
    const { facilitator, settleTimeoutMs } = this.#options
    const found: LookupResult = await facilitator.lookUp(offered, this.#within(settleTimeoutMs))
    if (found.state !== 'open') return found
    const settlement = await facilitator.settle(offered, this.#within(settleTimeoutMs))
    // The first settlement attempt may still succeed.
    return settlement.state === 'failed' ? { state: 'unknown', reason: settlement.reason } : settlement
  }

  /**
   * Notifies the task of a failure before the row changes, so that a crash in between repeats the
   * notification.
   */
  async #decide(record: PaymentRecord, settlement: Settlement): Promise<PaymentRecord> {
    const { ledger, tasks } = this.#options
    if (settlement.state === 'failed') await tasks.onFailed({ ...record, reason: settlement.reason })
    const done = await ledger.change(record, changeOf(settlement))
    const current = 'record' in done ? done.record : 'refused' in done ? (done.refused ?? record) : record
    if (current.txHash === undefined) return current
    await tasks.onSettled(current)
    return current.state === 'spent' ? this.#orphanIfEnded(current) : current
  }

  /**
   * Orphans a payment if its task ended before the settlement, for example because it was canceled. A missing
   * task may still be created.
   */
  async #orphanIfEnded(spent: PaymentRecord): Promise<PaymentRecord> {
    const { ledger, tasks } = this.#options
    const state = await tasks.outcomeOf(spent)
    if (state !== 'failed' && state !== 'rejected' && state !== 'canceled') return spent
    const done = await ledger.change(spent, { kind: 'orphan', reason: `task_${state}` })
    return 'record' in done ? done.record : spent
  }

  #within(ms: number): AbortSignal {
    return AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(ms)])
  }

  /** Keeps the settlement running after its caller has stopped waiting. */
  #track(settled: Promise<PaymentRecord>): void {
    const tracked = settled.catch((error: unknown) => {
      this.#options.log.error(
        { err: error },
        'could not store the outcome of a settlement; it will be looked up again',
      )
    })
    this.#inProgress.add(tracked)
    void tracked.finally(() => this.#inProgress.delete(tracked))
  }
}

function changeOf(settlement: Settlement) {
  if (settlement.state === 'unknown') return { kind: 'no-answer', reason: settlement.reason } as const
  if (settlement.state === 'failed') return { kind: 'failed', reason: settlement.reason } as const
  return { kind: 'settled', txHash: settlement.txHash, payer: settlement.payer } as const
}

function matchedTransferOf({ id, terms, transfer, nonceKey }: PaymentRecord): MatchedTransfer {
  if (transfer === undefined || nonceKey === undefined) throw new Error(`payment ${id} has no transfer`)
  return { terms, transfer, nonceKey }
}
