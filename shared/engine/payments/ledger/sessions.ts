import { randomBytes, randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import type { PaymentSession } from '@parley/wire/model/payment'
import { timestamp, timestampOf } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentTerms } from '../../store/payment-store.ts'
import { matchTerms, nonceKeyOf, requireTimely } from '../x402/match-terms.ts'
import { PaymentRefused } from '../x402/payment-refused.ts'
import type { PresentedPayment } from '../x402/presented-payment.ts'
import type { Collector } from './collector.ts'
import type { Ledger } from './ledger.ts'
import { storedTerms } from './purchase.ts'

interface Parts {
  ledger: Ledger
  collector: Collector
  sandbox: boolean
}

/** `expiresAt` limits the time within which the session must be paid (spec/payments.md#payment-session). */
const payWithinMs = 15 * 60_000
const waitMaxMs = 60_000
/** The row is polled, because another process may decide the payment. */
const pollIntervalMs = 1000
/** Maximum number of unpaid sessions, per owner and in total. */
const openMax = { owner: 10_000, all: 100_000 }

export type SessionStatus = PaymentSession['status']

/**
 * A payment that a person or a program makes and that a later `message/send` spends
 * (spec/payments.md#payment-session).
 */
export class PaymentSessions {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Starts a session. @throws ParleyError TooManyRequests or Unavailable if there are too many unpaid sessions */
  async start(
    owner: string,
    terms: PaymentTerms,
    { skillId, returnUrl }: Partial<Record<'skillId' | 'returnUrl', string | undefined>> = {},
  ): Promise<PaymentRecord> {
    const { ledger, sandbox } = this.#parts
    const open = await ledger.store.countOpen(owner)
    if (open.owner >= openMax.owner) throw tooManySessions('TooManyRequests', openMax.owner)
    if (open.all >= openMax.all) throw tooManySessions('Unavailable', openMax.all)
    const at = timestamp()
    const expiresAt = Date.now() + payWithinMs
    const record: PaymentRecord = {
      id: randomUUID(),
      owner,
      kind: 'session',
      state: 'open',
      version: 0,
      terms: storedTerms(terms),
      sandbox,
      ...(skillId !== undefined && { skillId }),
      ...(returnUrl !== undefined && { returnUrl }),
      captureToken: randomBytes(24).toString('base64url'),
      expiresAt,
      dueAt: expiresAt,
      attempts: 0,
      createdAt: at,
      updatedAt: at,
    }
    await ledger.add(record)
    return record
  }

  /** Returns the session. @throws ParleyError NotFound if the owner has no such session */
  async find(id: string, owner: string): Promise<PaymentRecord> {
    const found = await this.#parts.ledger.store.findPayment(id, owner)
    if (found?.kind !== 'session') throw sessionNotFound()
    return found
  }

  /**
   * Finds a session by the token in its capture address. The token is a capability: its holder may view and
   * pay the session.
   * @throws ParleyError NotFound
   */
  async findByCapture(captureToken: string): Promise<PaymentRecord> {
    const found = await this.#parts.ledger.store.findByCapture(captureToken)
    if (found === undefined) throw sessionNotFound()
    return found
  }

  /**
   * Resolves when the session is decided, after 60 s, or when the signal aborts.
   * @throws ParleyError NotFound
   */
  async wait(id: string, owner: string, signal: AbortSignal): Promise<PaymentRecord> {
    const until = AbortSignal.any([signal, AbortSignal.timeout(waitMaxMs)])
    for (;;) {
      const record = await this.find(id, owner)
      if (statusOf(record) !== 'pending' || until.aborted) return record
      // An open session can expire without a change to its row.
      const endsAt = record.state === 'open' ? record.expiresAt : undefined
      const left = Math.max((endsAt ?? Infinity) - Date.now(), 1)
      const poll = AbortSignal.timeout(Math.min(pollIntervalMs, left))
      await this.#parts.ledger.nextChange(id, AbortSignal.any([until, poll]))
    }
  }

  /**
   * Pays the session with a signed transfer. Resolves with the session once it is decided, or after 10 s.
   * @throws PaymentRefused when the payment is refused (no money was taken; an open session remains payable)
   * @throws ParleyError Unavailable
   */
  async paySession(session: PaymentRecord, presented: PresentedPayment): Promise<PaymentRecord> {
    const { ledger, collector } = this.#parts
    if (presented.kind === 'session') throw new PaymentRefused('invalid_payload')
    const transfer = presented.transfer
    const nonceKey = nonceKeyOf(session.terms, transfer.authorization)
    // A repeated payment returns the original outcome.
    if (session.nonceKey === nonceKey) return session
    const status = statusOf(session)
    if (status === 'expired') throw new PaymentRefused('payment_session_expired')
    if (status === 'failed') throw new PaymentRefused('payment_session_failed')
    if (session.state !== 'open') throw new PaymentRefused('payment_session_spent')
    matchTerms(presented, [session.terms])
    requireTimely(transfer)
    const claimed = await ledger.change(session, { kind: 'claim', transfer, nonceKey })
    if ('record' in claimed) return collector.collect(claimed.record)
    const refusal = 'conflict' in claimed ? 'invalid_exact_evm_nonce_already_used' : 'payment_session_spent'
    ledger.refused(session.owner, session.id, refusal)
    throw new PaymentRefused(refusal)
  }
}

export function statusOf({ state, expiresAt, txHash }: PaymentRecord): SessionStatus {
  if (state === 'failed') return 'failed'
  if (state === 'expired') return 'expired'
  if (state === 'open') return (expiresAt ?? 0) <= Date.now() ? 'expired' : 'pending'
  return txHash === undefined ? 'pending' : 'completed'
}

/** Returns the session as its owner sees it. @param baseUrl the address at which the caller reached the agent */
export function sessionOf(record: PaymentRecord, baseUrl: string): PaymentSession {
  const { expiresAt = 0 } = record
  return {
    ...record,
    status: statusOf(record),
    expiresAt: timestampOf(expiresAt * 1000),
    captureUrl: `${baseUrl}/pay/${record.captureToken ?? ''}`,
    spent: record.state !== 'settled',
  }
}

function tooManySessions(error: 'TooManyRequests' | 'Unavailable', max: number): ParleyError {
  return new ParleyError(error, {
    message: `There are already ${max} unpaid payment sessions`,
    data: { reason: 'payment_sessions' },
    headers: { 'retry-after': '60' },
  })
}

const sessionNotFound = () =>
  new ParleyError('NotFound', { message: 'Payment session not found', data: { reason: 'payment_session' } })
