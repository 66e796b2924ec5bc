import type { PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'

/** A transfer together with the terms that it pays. */
export interface MatchedTransfer {
  terms: PaymentTerms
  transfer: SignedTransfer
  /** The key that `nonceKeyOf` returns. */
  nonceKey: string
}

export type VerifyResult = { valid: true } | { valid: false; reason: string }

/** `unknown` means that money may have moved. `settled` and `failed` are reported only when certain. */
export type Settlement =
  | { state: 'settled'; txHash: string; payer: string }
  | { state: 'failed'; reason: string }
  | { state: 'unknown'; reason: string }

/** `open` means that the transfer has not happened but still can, or that only `settle` can decide. */
export type LookupResult = Settlement | { state: 'open' }

/** A log of a token transfer. */
export interface TransferLog {
  /** Identifies the log until a reorganization of the chain. */
  id: string
  asset: string
  payTo: string
  payer: string
  /** The amount in atomic units. */
  atomic: string
  txHash: string
  block: number
  blockHash: string
  logIndex: number
}

/** A transfer that has the required confirmations. */
export interface ChainTransfer extends TransferLog {
  /** Identifies the transfer forever, so that it is counted once. */
  key: string
  /** Time of the block (milliseconds since 1970). */
  minedAt: number
  /**
   * The nonce of the signed authorization (EIP-3009) that made the transfer. The ledger counts such transfers by this nonce,
   * so that they must not be counted a second time. Undefined for a plain transfer.
   */
  authorizationNonce?: string | undefined
}

export interface TransferQuery {
  assets: readonly string[]
  payTos: readonly string[]
  /** Both blocks are included. */
  fromBlock: number
  toBlock: number
}

/** The chain's node failed to return transfers. The message contains no secrets and may be logged. */
export class ChainReadError extends Error {
  override readonly name = 'ChainReadError'
  /** Whether a smaller range of blocks may succeed: nodes limit the range, the number of logs and the time. */
  readonly isRangeRefused: boolean

  constructor(message: string, isRangeRefused: boolean) {
    super(message)
    this.isRangeRefused = isRangeRefused
  }
}

/** The token transfers on a chain. Every method throws ChainReadError if the node does not return the data. */
export interface TransferSource {
  readonly network: string
  /** Returns the block after which every transfer is mined that is sent from now on, even if the chain is reorganized. */
  startBlock(): Promise<number>
  /** Returns the newest block with the required confirmations; undefined if there is none. */
  confirmedBlock(): Promise<{ number: number; minedAt: number } | undefined>
  logsIn(query: TransferQuery): Promise<TransferLog[]>
  /** Also throws ChainReadError if the chain was reorganized since the log was read. */
  transferOf(log: TransferLog): Promise<ChainTransfer>
}

/**
 * Verifies and settles transfers like an x402 facilitator. A chain accepts a transfer's nonce only once, so
 * repeated calls of `settle` never move the money twice.
 */
export interface Facilitator extends AsyncDisposable {
  /** Whether the facilitator moves test money. */
  readonly sandbox: boolean
  /** The chain on which plain transfers can be seen. Undefined without PAYMENT_RPC_URL. */
  readonly transfers?: TransferSource | undefined
  /** Verifies a transfer without side effects. @throws Error when the facilitator is unreachable */
  verify(offered: MatchedTransfer, signal: AbortSignal): Promise<VerifyResult>
  /** Never rejects. If the response is missing or cannot be parsed, the outcome is `unknown`. */
  settle(offered: MatchedTransfer, signal: AbortSignal): Promise<Settlement>
  /** Looks up a settlement whose outcome is unknown. Never rejects. */
  lookUp(offered: MatchedTransfer, signal: AbortSignal): Promise<LookupResult>
}

/** Failures that certainly occur before the transaction is sent. Any other failure may occur afterwards. */
const refusedBeforeSending =
  /^(invalid|insufficient|unsupported)_|^payment_expired$|^asset_not_deployed_contract$/
/** Exceptions in which the transaction may have been sent or the nonce is already used. */
const undecided = /already_used|pending|transaction_failed|transaction_state|event_mismatch|time(d_)?out/

export interface SettleAnswer {
  success: boolean
  errorReason?: string | undefined
  transaction?: string | undefined
  network?: string | undefined
  payer?: string | undefined
}

/** Interprets an x402 settle response. `isRetry` means that an earlier attempt received no response. */
export function settlementOf(answer: SettleAnswer, offered: MatchedTransfer, isRetry: boolean): Settlement {
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
  const isCertain = !isRetry && !sent && refusedBeforeSending.test(reason) && !undecided.test(reason)
  return { state: isCertain ? 'failed' : 'unknown', reason }
}

/** Reduces an external reason to a short code of word characters. */
export function codeOf(reason: unknown): string {
  return typeof reason === 'string' && /^\w{1,100}$/.test(reason) ? reason : 'payment_refused'
}
