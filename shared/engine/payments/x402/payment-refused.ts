import type { JsonObject, StatusPayment } from '@parley/wire/model/task'
import type { PaymentTerms } from '../../store/payment-store.ts'
import { failedReceipt, paymentRequired, type Resource } from './x402.ts'

/** Why a payment was refused. Uses the x402 code if x402 defines one. */
export type Refusal =
  | 'payment_required'
  | 'invalid_payload'
  | 'invalid_x402_version'
  | 'unsupported_scheme'
  | 'invalid_network'
  | 'invalid_payment_requirements'
  | 'invalid_exact_evm_recipient_mismatch'
  | 'invalid_exact_evm_payload_authorization_value_mismatch'
  | 'invalid_exact_evm_payload_authorization_valid_after'
  | 'invalid_exact_evm_payload_authorization_valid_before'
  | 'invalid_exact_evm_signature'
  | 'invalid_exact_evm_nonce_already_used'
  | 'invalid_exact_evm_insufficient_balance'
  | 'payment_session_not_found'
  | 'payment_session_pending'
  | 'payment_session_spent'
  | 'payment_session_failed'
  | 'payment_session_expired'
  | 'payment_session_mismatch'
  | 'payment_refused'
  | 'settlement_failed'

/** The payment was refused and no money was taken. */
export class PaymentRefused extends Error {
  override readonly name = 'PaymentRefused'
  readonly refusal: string

  constructor(refusal: Refusal | (string & {})) {
    super(refusal)
    this.refusal = refusal
  }
}

/**
 * HTTP 402, the only error with an x402 body instead of the error envelope (spec/payments.md#unpaid-calls).
 */
export class PaymentRequired extends Error {
  override readonly name = 'PaymentRequired'
  readonly status = 402
  readonly body: string
  /** The body as JSON. */
  readonly required: JsonObject
  readonly terms: readonly PaymentTerms[]
  readonly sandbox: boolean
  readonly headers: Record<string, string>
  /** The code in the body's `error` field. */
  readonly refusal: string

  constructor(details: {
    error: string
    resource: Resource
    terms: readonly PaymentTerms[]
    sandbox: boolean
  }) {
    super(details.error)
    const { body, header } = paymentRequired(details)
    this.refusal = details.error
    this.body = JSON.stringify(body)
    this.required = body
    this.terms = details.terms
    this.sandbox = details.sandbox
    this.headers = { 'payment-required': header }
  }
}

/** The codes of the x402 extension of A2A for refusals. Other refusals have their own code, in capitals. */
const errorCodes: Readonly<Record<string, string>> = {
  invalid_exact_evm_insufficient_balance: 'INSUFFICIENT_FUNDS',
  insufficient_funds: 'INSUFFICIENT_FUNDS',
  invalid_exact_evm_signature: 'INVALID_SIGNATURE',
  invalid_exact_evm_payload_signature: 'INVALID_SIGNATURE',
  invalid_exact_evm_payload_authorization_valid_before: 'EXPIRED_PAYMENT',
  payment_session_expired: 'EXPIRED_PAYMENT',
  invalid_exact_evm_nonce_already_used: 'DUPLICATE_NONCE',
  payment_session_spent: 'DUPLICATE_NONCE',
  invalid_network: 'NETWORK_MISMATCH',
  invalid_payment_requirements: 'INVALID_AMOUNT',
  invalid_exact_evm_payload_authorization_value_mismatch: 'INVALID_AMOUNT',
  payment_session_mismatch: 'INVALID_AMOUNT',
  payment_refused: 'SETTLEMENT_FAILED',
}

/** @param refusal the code of a `PaymentRefused`, which may be that of a facilitator */
function errorCodeOf(refusal: string): string {
  const code = errorCodes[refusal] ?? refusal.toUpperCase()
  return /^[A-Z][A-Z0-9_]{0,99}$/.test(code) ? code : 'SETTLEMENT_FAILED'
}

/** Returns the payments in the status of a task that waits for one: the terms and, if there was one, the last refusal. */
export function awaitedPayment({ refusal, required, terms }: PaymentRequired): StatusPayment {
  if (refusal === 'payment_required') return { status: 'payment-required', required }
  return { ...failedPayment(refusal, terms), required }
}

/** Returns the payments in the status of a task after its payment was refused. */
export function failedPayment(refusal: string, terms: readonly PaymentTerms[]): StatusPayment {
  const receipts = [failedReceipt(refusal, terms[0])]
  return { status: 'payment-failed', error: errorCodeOf(refusal), receipts }
}
