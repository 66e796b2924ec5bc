import { randomInt, randomUUID } from 'node:crypto'
import type { Log } from '@parley/kit/process/log'
import { toWhole } from '@parley/wire/model/amount'
import { timestamp } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentTerms, TransferOffer } from '../../store/payment-store.ts'
import { amountKeyOf } from '../../store/transfer-offers.ts'
import type { ChainTransfer, TransferLog, TransferSource } from '../facilitators/facilitator.ts'
import type { Ledger } from './ledger.ts'
import { statusOf } from './sessions.ts'

/** A payment option whose author accepts plain transfers. */
export type TransferPrice = Pick<PaymentTerms, 'network' | 'asset' | 'payTo'>

interface Parts {
  ledger: Ledger
  source: TransferSource | undefined
  prices: readonly TransferPrice[]
  log: Log
}

/** The exact amount exceeds the price by 1 to this many atomic units. */
const raiseMax = 999
const decimalsMin = 6
/** How long after the end of a session its amount belongs to it, so that a late transfer can be refunded. */
export const lateMs = 7 * 24 * 60 * 60 * 1000
/** Limits the work of reading transfers. */
export const offersMax = 5000
/** Random amounts to try. If most amounts are in use, the session has no direct transfer. */
const amountsTried = 16
const nodeTimeoutMs = 3000
const nodeRetryMs = 10_000

/**
 * Payments by plain transfers of a token. A plain transfer names no session, so each session that offers one has an
 * amount that no other session has (docs/decisions/0051).
 */
export class Transfers {
  readonly #parts: Parts
  #nodeRetryAt = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /**
   * Returns the offer of a session, and makes it on the first call while the session is open. Returns undefined if the
   * session cannot be paid with a plain transfer.
   */
  async offerFor(session: PaymentRecord): Promise<TransferOffer | undefined> {
    const { ledger, source } = this.#parts
    if (source === undefined) return undefined
    const { store } = ledger
    const isOpen = session.state === 'open' && statusOf(session) === 'pending'
    if (!isOpen) return store.transferOfferOf(session.id)
    if (!this.#accepts(session)) return undefined
    const made = await store.transferOfferOf(session.id)
    if (made !== undefined) return made
    if ((await store.listTransferOffers(offersMax)).length >= offersMax) return undefined
    const fromBlock = await this.#latestBlock(source)
    if (fromBlock === undefined) return undefined
    const { id: sessionId, owner, expiresAt = 0 } = session
    for (let attempt = 0; attempt < amountsTried; attempt += 1) {
      const terms = raised(session.terms)
      const offer = { sessionId, owner, terms, fromBlock, expiresAt, until: expiresAt + lateMs }
      if (await store.addTransferOffer(offer)) return offer
    }
    return undefined
  }

  /**
   * Counts the transfer, if it was not counted before. A crash at any point leaves it uncounted or counted once, because
   * one commit changes the ledger and claims the transfer.
   */
  async count(transfer: ChainTransfer): Promise<void> {
    const { ledger } = this.#parts
    if (transfer.isAuthorized) return
    if ((await ledger.store.findByNonce(transfer.key)) !== undefined) return
    const offer = await ledger.store.findTransferOffer(amountKeyOf({ ...transfer, network: this.#network }))
    if (offer === undefined || transfer.block <= offer.fromBlock) return this.#warn(transfer)
    const session = await ledger.store.loadPayment(offer.sessionId)
    if (session === undefined) return this.#orphan(transfer, offer, 'late_transfer')
    const { key, txHash, payer, minedAt } = transfer
    const change = {
      kind: 'transferred',
      transferKey: key,
      txHash,
      payer,
      terms: offer.terms,
      minedAt,
    } as const
    const done = await ledger.change(session, change)
    if ('record' in done || 'conflict' in done || done.refused?.nonceKey === key) return
    const isSecond = (done.refused ?? session).txHash !== undefined
    await this.#orphan(transfer, offer, isSecond ? 'second_transfer' : 'late_transfer')
  }

  /** Lists the transfer for a refund. */
  async #orphan(
    { key, txHash, payer, minedAt }: ChainTransfer,
    { owner, terms, sessionId }: TransferOffer,
    reason: 'late_transfer' | 'second_transfer',
  ): Promise<void> {
    const { ledger, log } = this.#parts
    const at = timestamp()
    const id = randomUUID()
    const fields = { owner, terms, payer, txHash, reason, nonceKey: key, sandbox: false, attempts: 0 }
    const dates = { createdAt: at, updatedAt: at, completedAt: new Date(minedAt).toISOString() }
    const added = await ledger.add({ id, kind: 'direct', state: 'orphaned', version: 0, ...fields, ...dates })
    if (added === 'added')
      log.warn(
        { payment_id: id, payment_session_id: sessionId, tx_hash: txHash, payer, reason },
        'a transfer cannot pay its session, and is listed for a refund (parley payments --orphaned)',
      )
  }

  /** Such a transfer has no owner, so that it cannot be in the ledger. */
  #warn({ payer, payTo, asset, atomic, txHash }: TransferLog): void {
    this.#parts.log.warn(
      { payer, pay_to: payTo, asset, atomic, tx_hash: txHash },
      'a transfer matches no payment session: its amount is not that of a session. If it was meant as a payment, return it to the payer',
    )
  }

  get #network(): string {
    return this.#parts.source?.network ?? ''
  }

  #accepts(session: PaymentRecord): boolean {
    const { terms, sandbox } = session
    if (sandbox || terms.network !== this.#network || terms.decimals < decimalsMin) return false
    const isWorthLittle = BigInt(raiseMax) * 100n < BigInt(terms.atomic)
    return isWorthLittle && this.#parts.prices.some((price) => isSamePlace(price, terms))
  }

  /** Fails fast after a failure, because anyone who has the address of a session can request this. */
  async #latestBlock(source: TransferSource): Promise<number | undefined> {
    if (Date.now() < this.#nodeRetryAt) return undefined
    const { promise: timeout, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => resolve(undefined), nodeTimeoutMs)
    try {
      const block = await Promise.race([source.latestBlock().catch(() => undefined), timeout])
      if (block === undefined) {
        this.#nodeRetryAt = Date.now() + nodeRetryMs
        this.#parts.log.warn(
          'the node of the chain did not respond: a session is shown without direct transfer',
        )
      }
      return block
    } finally {
      clearTimeout(timer)
    }
  }
}

function raised(terms: PaymentTerms): PaymentTerms {
  const atomic = BigInt(terms.atomic) + BigInt(randomInt(1, raiseMax + 1))
  return { ...terms, atomic: atomic.toString(), amount: toWhole(atomic, terms.decimals) }
}

function isSamePlace(price: TransferPrice, terms: TransferPrice): boolean {
  const placeOf = ({ network, asset, payTo }: TransferPrice) =>
    [network, asset, payTo].join(' ').toLowerCase()
  return placeOf(price) === placeOf(terms)
}
