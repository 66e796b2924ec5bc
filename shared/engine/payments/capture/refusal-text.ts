/** Texts of the payment page for the codes of `PaymentRefused`. Contains no external text. */
const texts: Record<string, string> = {
  payment_required: 'There was no payment in the form.',
  invalid_payload: 'That is no x402 payment: it must be the JSON of one, or that JSON in base64.',
  invalid_x402_version: 'That is a payment of an x402 version that is not known here; 1 and 2 are.',
  unsupported_scheme: 'That payment has another scheme than “exact”.',
  invalid_network: 'That payment is on another network than the one that is asked.',
  invalid_payment_requirements: 'That payment is for another amount, asset or receiver than what is asked.',
  invalid_exact_evm_recipient_mismatch: 'That payment goes to another receiver than the one that is asked.',
  invalid_exact_evm_payload_authorization_value_mismatch:
    'That payment is not exactly the amount that is asked.',
  invalid_exact_evm_payload_authorization_valid_after: 'That payment is not valid yet.',
  invalid_exact_evm_payload_authorization_valid_before:
    'That payment has expired, or is valid for more than a day. Sign it again.',
  invalid_exact_evm_signature: 'The signature is not that of the payer over exactly this payment.',
  invalid_exact_evm_nonce_already_used: 'That payment was used before. Sign a new one.',
  invalid_exact_evm_insufficient_balance: 'The wallet does not hold enough of this asset.',
  invalid_exact_evm_transaction_simulation_failed:
    'The network would not carry out that payment. Does the wallet hold enough of this asset?',
  payment_session_spent: 'Somebody is paying this already, or has paid it.',
  payment_session_expired: 'The time to pay is over.',
  payment_session_failed: 'This payment has failed.',
  settlement_failed: 'The network did not carry out the payment.',
  unavailable: 'The payment cannot be checked at the moment. Try again in a minute.',
}

export function refusalText(code: string): string {
  const text = Object.hasOwn(texts, code) ? texts[code] : undefined
  return text ?? 'The payment was refused.'
}

/** A code that is safe in a URL. */
export function isRefusalCode(code: unknown): code is string {
  return typeof code === 'string' && /^\w{1,100}$/.test(code)
}
