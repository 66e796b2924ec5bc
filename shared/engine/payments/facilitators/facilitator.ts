import type { PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'

/** A transfer that was matched with what was asked. */
export interface MatchedTransfer {
  terms: PaymentTerms
  transfer: SignedTransfer
  /** Of `nonceKeyOf`. */
  nonceKey: string
}

export type VerifyResult = { valid: true } | { valid: false; reason: string }

/** `unknown`: whether money moved is not known. Only what is certain is told as `settled` or `failed`. */
export type Settlement =
  | { state: 'settled'; txHash: string; payer: string }
  | { state: 'failed'; reason: string }
  | { state: 'unknown'; reason: string }

/** `open`: it did not move yet and still can, or nobody but `settle` can tell. */
export type LookupResult = Settlement | { state: 'open' }

/**
 * Whoever moves the money (x402: facilitator). A transfer carries a nonce that a chain takes once, so `settle` may be
 * repeated: it never moves the money twice.
 */
export interface Facilitator extends AsyncDisposable {
  /** Test money. */
  readonly sandbox: boolean
  /** Changes nothing. @throws Error when it cannot be asked */
  verify(offered: MatchedTransfer, signal: AbortSignal): Promise<VerifyResult>
  /** Never rejects: what cannot be asked or understood is `unknown`. */
  settle(offered: MatchedTransfer, signal: AbortSignal): Promise<Settlement>
  /** What became of a settlement without an answer. Never rejects. */
  lookUp(offered: MatchedTransfer, signal: AbortSignal): Promise<LookupResult>
}

/** Refusals of what was shown, before anything is sent; every other failure, known or not, may have come after that. */
const refused = /^(invalid|insufficient|unsupported)_|^payment_expired$|^asset_not_deployed_contract$/
/** Of these: sent and not seen, or the nonce was used by somebody. */
const undecided = /already_used|pending|transaction_failed|transaction_state|event_mismatch|time(d_)?out/

export interface SettleAnswer {
  success: boolean
  errorReason?: string | undefined
  transaction?: string | undefined
  network?: string | undefined
  payer?: string | undefined
}

/** What an answer of `settle` in x402's shape means. `again`: an earlier attempt was not answered. */
export function settlementOf(answer: SettleAnswer, offered: MatchedTransfer, again: boolean): Settlement {
  const payer = offered.transfer.authorization.from
  if (answer.success) {
    const txHash = answer.transaction ?? ''
    if (!/^0x[\da-fA-F]{64}$/.test(txHash)) return { state: 'unknown', reason: 'no_transaction' }
    if (answer.network !== undefined && answer.network !== offered.terms.network)
      return { state: 'unknown', reason: 'other_network' }
    if (answer.payer !== undefined && answer.payer.toLowerCase() !== payer.toLowerCase())
      return { state: 'unknown', reason: 'other_payer' }
    return { state: 'settled', txHash, payer }
  }
  const reason = codeOf(answer.errorReason)
  const sent = answer.transaction !== undefined && answer.transaction !== ''
  const isCertain = !again && !sent && refused.test(reason) && !undecided.test(reason)
  return { state: isCertain ? 'failed' : 'unknown', reason }
}

/** A reason from outside, as a code of ours: short, and nothing but letters. */
export function codeOf(reason: unknown): string {
  return typeof reason === 'string' && /^\w{1,100}$/.test(reason) ? reason : 'payment_refused'
}
