import type { PaymentRecord, PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'
import { nameOfVersion1 } from './version-1-networks.ts'

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

/**
 * How we ask. Clients of version 2 read the header; those of version 1 read the body, and refuse it whole when it names a
 * network that they do not know. So the body is of version 1 wherever a way to pay has a name there, and leaves the others
 * out; else it says the same as the header. `sandbox` is there only where it is test money.
 */
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
  const version1 = accepts.flatMap((one) => {
    const network = nameOfVersion1(one.network)
    return network === undefined ? [] : [{ ...fieldsOfBoth(one, resource), network }]
  })
  const inBody =
    version1.length > 0
      ? { ...required, x402Version: 1, accepts: version1 }
      : { ...required, accepts: accepts.map((one) => fieldsOfBoth(one, resource)) }
  return { body: { ...inBody, ...(asked.sandbox && { sandbox: true }) }, header: base64Of(required) }
}

/** The fields of version 1 next to those of version 2 that mean the same. */
function fieldsOfBoth(one: Requirements, { url, description, mimeType }: Resource) {
  return { ...one, maxAmountRequired: one.amount, resource: url, description, mimeType }
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
