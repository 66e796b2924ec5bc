import { randomInt, randomUUID } from 'node:crypto'
import type { Log } from '@parley/kit/process/log'
import { toWhole } from '@parley/wire/model/amount'
import { isTransferable, transferRaiseMax } from '@parley/wire/model/price'
import { timestamp } from '@parley/wire/model/timestamp'
import type { PaymentRecord, PaymentTerms, TransferOffer } from '../../store/payment-store.ts'
import { amountKeyOf } from '../../store/transfer-offers.ts'
import type { ChainTransfer, TransferLog, TransferSource } from '../facilitators/facilitator.ts'
import { nonceKeyOf } from '../x402/match-terms.ts'
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

/** How long after the end of a session its amount belongs to it, so that a late transfer can be refunded. */
export const lateMs = 7 * 24 * 60 * 60 * 1000
/** Limits the work of reading transfers. */
export const offersMax = 2000
/** Leaves amounts for other owners. */
const offersOfOwnerMax = 100
/** While transfers have not been read for this long, a payment would not be recognized in time. */
const behindMaxMs = 5 * 60_000
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
    if (!(await this.#canOffer(session.owner))) return undefined
    const fromBlock = await this.#startBlock(source)
    if (fromBlock === undefined) return undefined
    const { id: sessionId, owner, expiresAt = 0 } = session
    for (let attempt = 0; attempt < amountsTried; attempt += 1) {
      const terms = raised(session.terms)
      const offer = { sessionId, owner, terms, fromBlock, expiresAt, until: expiresAt + lateMs }
      if (await store.addTransferOffer(offer)) return offer
    }
    return undefined
  }

  /** Whether a session has the amount of the transfer. */
  async isOffered(transfer: TransferLog): Promise<boolean> {
    return (await this.#offerOf(transfer)) !== undefined
  }

  /**
   * Counts the transfer, if it was not counted before. A crash at any point leaves it uncounted or counted once, because
   * one commit changes the ledger and claims the transfer.
   */
  async count(transfer: ChainTransfer): Promise<void> {
    const { ledger } = this.#parts
    const key = this.#keyOf(transfer)
    if ((await ledger.store.findByNonce(key)) !== undefined) return
    const offer = await this.#offerOf(transfer)
    if (offer === undefined || transfer.block <= offer.fromBlock) return this.#warn(transfer)
    if (transfer.authorizationNonce !== undefined) return this.#orphan(transfer, offer, 'signed_elsewhere')
    const session = await ledger.store.loadPayment(offer.sessionId)
    if (session === undefined) return this.#orphan(transfer, offer, 'late_transfer')
    const { txHash, payer, minedAt } = transfer
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

  #offerOf(transfer: TransferLog): Promise<TransferOffer | undefined> {
    return this.#parts.ledger.store.findTransferOffer(amountKeyOf({ ...transfer, network: this.#network }))
  }

  /** A signed transfer has the key of its authorization, so that the authorization cannot pay for anything else. */
  #keyOf({ key, asset, payer, authorizationNonce: nonce }: ChainTransfer): string {
    if (nonce === undefined) return key
    return nonceKeyOf({ network: this.#network, asset }, { from: payer, nonce })
  }

  /** Lists the transfer for a refund. */
  async #orphan(
    transfer: ChainTransfer,
    { owner, terms, sessionId }: TransferOffer,
    reason: 'late_transfer' | 'second_transfer' | 'signed_elsewhere',
  ): Promise<void> {
    const { txHash, payer, minedAt } = transfer
    const { ledger, log } = this.#parts
    const at = timestamp()
    const id = randomUUID()
    const fields = {
      owner,
      terms,
      payer,
      txHash,
      reason,
      nonceKey: this.#keyOf(transfer),
      sandbox: false,
      attempts: 0,
    }
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

  #accepts({ terms, sandbox }: PaymentRecord): boolean {
    if (sandbox || terms.network !== this.#network || !isTransferable(terms)) return false
    return this.#parts.prices.some((price) => isSamePlace(price, terms))
  }

  async #canOffer(owner: string): Promise<boolean> {
    const { store } = this.#parts.ledger
    const count = await store.countTransferOffers(this.#network, owner)
    if (count.all >= offersMax || count.owner >= offersOfOwnerMax) return false
    const { behindSince } = count.all === 0 ? {} : await store.transferProgress(this.#network)
    return behindSince === undefined || Date.now() - behindSince < behindMaxMs
  }

  /** Fails fast after a failure, because anyone who has the address of a session can request this. */
  async #startBlock(source: TransferSource): Promise<number | undefined> {
    if (Date.now() < this.#nodeRetryAt) return undefined
    const { promise: timeout, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => resolve(undefined), nodeTimeoutMs)
    try {
      const block = await Promise.race([source.startBlock().catch(() => undefined), timeout])
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
  const atomic = BigInt(terms.atomic) + BigInt(randomInt(1, transferRaiseMax + 1))
  return { ...terms, atomic: atomic.toString(), amount: toWhole(atomic, terms.decimals) }
}

function isSamePlace(price: TransferPrice, terms: TransferPrice): boolean {
  const placeOf = ({ network, asset, payTo }: TransferPrice) =>
    [network, asset, payTo].join(' ').toLowerCase()
  return placeOf(price) === placeOf(terms)
}
