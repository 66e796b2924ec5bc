/** The payment page's texts for the `PaymentRefused` codes. They contain no external text. */
const texts: Record<string, string> = {
  payment_required: 'The form contains no payment.',
  invalid_payload: 'This is not an x402 payment. Paste its JSON, or its JSON in base64.',
  invalid_x402_version: 'This x402 version is not supported. Use version 1 or 2.',
  unsupported_scheme: 'The scheme of this payment is not supported. Use “exact”.',
  invalid_network: 'This payment is on a different network than requested.',
  invalid_payment_requirements: 'The amount, asset or receiver of this payment differs from the request.',
  invalid_exact_evm_recipient_mismatch: 'The receiver of this payment differs from the request.',
  invalid_exact_evm_payload_authorization_value_mismatch:
    'The amount of this payment differs from the requested amount.',
  invalid_exact_evm_payload_authorization_valid_after: 'This payment is not valid yet.',
  invalid_exact_evm_payload_authorization_valid_before:
    'This payment has expired, or is valid for more than a day. Sign a new one.',
  invalid_exact_evm_signature: 'The signature does not match this payment and its payer.',
  invalid_exact_evm_nonce_already_used: 'This payment has already been used. Sign a new one.',
  invalid_exact_evm_insufficient_balance: 'The wallet does not hold enough of this asset.',
  invalid_exact_evm_transaction_simulation_failed:
    'The network would reject this payment. Check that the wallet holds enough of this asset.',
  payment_session_spent: 'This session is already being paid, or has been paid.',
  payment_session_expired: 'The payment session has expired.',
  payment_session_failed: 'This payment failed.',
  settlement_failed: 'The network rejected the payment.',
  unavailable: 'The payment cannot be checked at the moment. Try again in a minute.',
}

export function refusalText(code: string): string {
  const text = Object.hasOwn(texts, code) ? texts[code] : undefined
  return text ?? 'The payment was refused.'
}

/** Returns whether a code is safe in a URL. */
export function isRefusalCode(code: unknown): code is string {
  return typeof code === 'string' && /^\w{1,100}$/.test(code)
}
