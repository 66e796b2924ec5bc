import type { JsonObject, PaymentReceipt } from '@parley/wire/model/task'
import type { PaymentRecord, PaymentTerms, SignedTransfer } from '../../store/payment-store.ts'
import { nameOfVersion1 } from './version-1-networks.ts'

/** The parts of x402 version 2 (`@x402/core`) that Parley reads and writes. */

type Caip2 = `${string}:${string}`

export interface Requirements {
  scheme: 'exact'
  network: string
  asset: string
  /** The amount in atomic units. */
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  extra: { name: string; version: string }
}

/** The resource that the payment is for. */
export type Resource = { url: string; description: string; mimeType: string }

/** How long a newly signed transfer should be valid. */
export const maxTimeoutSeconds = 300

export function requirementsOf(terms: PaymentTerms): Requirements & { network: Caip2 } {
  const { network, asset, atomic, payTo, extra } = terms
  if (!isCaip2(network)) throw new Error(`${network} is not a CAIP-2 network`)
  return { scheme: 'exact', network, asset, amount: atomic, payTo, maxTimeoutSeconds, extra }
}

const isCaip2 = (network: string): network is Caip2 => network.includes(':')

/**
 * Returns the payload for a facilitator. It is always version 2, because the signature does not cover the
 * version.
 */
export function payloadOf(terms: PaymentTerms, transfer: SignedTransfer) {
  return { x402Version: 2, accepted: requirementsOf(terms), payload: { ...transfer } }
}

/**
 * Returns the body and header of a 402 response. Version 2 clients read the header. Version 1 clients read
 * the body, and reject it if it names an unknown network. The body is therefore version 1 if any of the
 * networks has a version 1 name, and omits the others. Otherwise it repeats the header. `sandbox` marks test
 * money.
 */
export function paymentRequired(refusal: {
  error: string
  resource: Resource
  terms: readonly PaymentTerms[]
  sandbox: boolean
}): { body: JsonObject; header: string } {
  const { error, resource, terms } = refusal
  const accepts = terms.map(requirementsOf)
  const extensions: JsonObject = refusal.sandbox
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
  return { body: { ...inBody, ...(refusal.sandbox && { sandbox: true }) }, header: base64Of(required) }
}

/** Adds the version 1 fields to the equivalent version 2 fields. */
function fieldsOfBoth(one: Requirements, { url, description, mimeType }: Resource) {
  return { ...one, maxAmountRequired: one.amount, resource: url, description, mimeType }
}

/** Returns the receipt as response headers of both versions, or no headers until the settlement is known. */
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

/** Returns the receipt for messages; undefined until the settlement is known. */
export function receiptOf({ txHash, terms, payer }: PaymentRecord): PaymentReceipt | undefined {
  if (txHash === undefined) return undefined
  return { success: true, transaction: txHash, network: nameOf(terms), ...(payer !== undefined && { payer }) }
}

/** Returns the receipt of a payment that was refused or not settled. */
export function failedReceipt(
  reason: string,
  terms: Pick<PaymentTerms, 'network'> | undefined,
): PaymentReceipt {
  return { success: false, errorReason: reason, transaction: '', network: terms ? nameOf(terms) : '' }
}

/** The name of the network in the terms of an unpaid call. */
const nameOf = ({ network }: Pick<PaymentTerms, 'network'>) => nameOfVersion1(network) ?? network

const base64Of = (value: object) => Buffer.from(JSON.stringify(value), 'utf8').toString('base64')
