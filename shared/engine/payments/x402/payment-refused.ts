import type { PaymentTerms } from '../../store/payment-store.ts'
import { paymentRequired, type Resource } from './x402.ts'

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
    this.headers = { 'payment-required': header }
  }
}
