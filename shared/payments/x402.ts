import type { PaymentRecord, PaymentTerms, SignedTransfer } from '../store/payment-store.ts'

/** The shapes of x402 version 2 (its official packages, `@x402/core`), as far as we say and read them. */

export interface Requirements {
  scheme: 'exact'
  network: string
  asset: string
  /** In atomic units. */
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  extra: { name: string; version: string }
}

/** What is paid for. */
export interface Resource {
  url: string
  description: string
  mimeType: string
}

/** How long a transfer that is signed now should be valid. */
export const maxTimeoutSeconds = 300

export function requirementsOf(terms: PaymentTerms): Requirements {
  const { network, asset, atomic, payTo, extra } = terms
  return { scheme: 'exact', network, asset, amount: atomic, payTo, maxTimeoutSeconds, extra }
}

/** What a facilitator is shown: version 2, whatever version brought it; the signature is over neither. */
export function payloadOf(terms: PaymentTerms, transfer: SignedTransfer) {
  return { x402Version: 2, accepted: requirementsOf(terms), payload: transfer }
}

/** How we ask: the body, and the header of version 2. `sandbox` stands there only where it is test money. */
export function paymentRequired(asked: {
  error: string
  resource: Resource
  terms: readonly PaymentTerms[]
  sandbox: boolean
}): { body: object; header: string } {
  const { error, resource, terms } = asked
  const accepts = terms.map(requirementsOf)
  const extensions = asked.sandbox
    ? { extensions: { sandbox: { info: { testMoney: true }, schema: {} } } }
    : {}
  const required = { x402Version: 2, error, resource, accepts, ...extensions }
  // The names that version 1 had for the same stand beside those of version 2.
  const both = accepts.map((one) => ({
    ...one,
    maxAmountRequired: one.amount,
    resource: resource.url,
    description: resource.description,
    mimeType: resource.mimeType,
  }))
  const body = { ...required, accepts: both, ...(asked.sandbox && { sandbox: true }) }
  return { body, header: base64Of(required) }
}

/** The receipt, in the response headers of both versions; none while the settlement is not known. */
export function receiptHeaders(payment: PaymentRecord): Record<string, string> {
  if (payment.txHash === undefined) return {}
  const receipt = base64Of({
    success: true,
    transaction: payment.txHash,
    network: payment.terms.network,
    payer: payment.payer,
    amount: payment.terms.atomic,
    ...(payment.sandbox && { extra: { sandbox: true } }),
  })
  return { 'payment-response': receipt, 'x-payment-response': receipt }
}

const base64Of = (value: object) => Buffer.from(JSON.stringify(value), 'utf8').toString('base64')
