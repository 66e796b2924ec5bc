import type { IncomingHttpHeaders } from 'node:http'
import { paymentSessionIdIn } from '@parley/wire/codecs/parley/metadata'
import { paidSessionIn, readSessionId } from '@parley/wire/codecs/parley/payments'
import { submittedPaymentIn } from '@parley/wire/codecs/x402'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { z } from 'zod'
import type { SignedTransfer } from '../../store/payment-store.ts'
import { PaymentRefused } from './payment-refused.ts'
import { networkOfVersion1 } from './version-1-networks.ts'

/** A request's payment: a signed transfer, or the id of a paid session. */
export type PresentedPayment =
  | { kind: 'session'; sessionId: string }
  | { kind: 'transfer'; network: string; accepted?: Accepted; transfer: SignedTransfer }

const headerMaxChars = 16 * 1024

const hex = (bytes: number) => z.string().regex(new RegExp(`^0x[\\da-fA-F]{${bytes * 2}}$`))
/** Some clients write numbers. A signature covers the value, in either form. */
const uint = z.preprocess(
  (given) => (Number.isSafeInteger(given) ? String(given) : given),
  z.string().regex(/^\d{1,78}$/),
)
/** Contract wallets produce signatures longer than 65 bytes. The facilitator verifies those signatures. */
const transfer = z.object({
  signature: z.string().regex(/^0x(?:[\da-fA-F]{2}){65,4096}$/),
  authorization: z.object({
    from: hex(20),
    to: hex(20),
    value: uint,
    validAfter: uint,
    validBefore: uint,
    nonce: hex(32),
  }),
})

const accepted = z.object({
  scheme: z.string().max(50),
  network: z.string().max(100),
  asset: z.string().max(100),
  amount: uint,
  payTo: z.string().max(100),
})
type Accepted = z.output<typeof accepted>

const version2 = z.object({ x402Version: z.literal(2), accepted, payload: z.unknown() })
const version1 = z.object({
  x402Version: z.literal(1),
  scheme: z.string().max(50),
  network: z.string().max(100),
  payload: z.unknown(),
})

/** A payment in the body of a request. */
export const paymentIn = z.union([
  version2.extend({ payload: transfer }),
  version1.extend({ payload: transfer }),
  paidSessionIn,
])

/**
 * Reads a request's payment from `PAYMENT-SIGNATURE` (x402 version 2), `X-PAYMENT` (either version, or
 * `{session_id}`), `X-PAYMENT-SESSION`, `message.metadata.payment_session_id` (spec/payments.md#session-handle), or the
 * metadata of x402 over A2A (spec/payments.md#x402-over-a2a). Returns undefined if the request has no payment.
 * @throws PaymentRefused when the payment is malformed
 */
export function readPresentedPayment(
  headers: Readonly<IncomingHttpHeaders>,
  metadata: Record<string, unknown> | undefined,
): PresentedPayment | undefined {
  const payment = headers['payment-signature'] ?? headers['x-payment']
  if (payment !== undefined) return readPayment(payment)
  const session = headers['x-payment-session'] ?? paymentSessionIdIn(metadata)
  if (session !== undefined && session !== null) return sessionOf(session)
  const submitted = submittedPaymentIn(metadata)
  return submitted && readPayload(submitted.payload)
}

/** @throws PaymentRefused */
function readPayment(header: unknown): PresentedPayment {
  if (typeof header !== 'string' || header.length > headerMaxChars)
    throw new PaymentRefused('invalid_payload')
  return readPayload(jsonOf(header.trim()))
}

/**
 * Reads the decoded JSON from a header or body.
 * @throws PaymentRefused
 */
export function readPayload(given: unknown): PresentedPayment {
  if (!isObject(given)) throw new PaymentRefused('invalid_payload')
  const sessionId = readSessionId(given)
  if (sessionId !== undefined && given['payload'] === undefined) return sessionOf(sessionId)
  const version = given['x402Version']
  if (version === 2) {
    const read = parsed(version2, given)
    requireExact(read.accepted.scheme)
    const { network } = read.accepted
    return { kind: 'transfer', network, accepted: read.accepted, transfer: parsed(transfer, read.payload) }
  }
  if (version !== 1) throw new PaymentRefused('invalid_x402_version')
  const read = parsed(version1, given)
  requireExact(read.scheme)
  const network = networkOfVersion1(read.network) ?? read.network
  return { kind: 'transfer', network, transfer: parsed(transfer, read.payload) }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

function requireExact(scheme: string): void {
  if (scheme !== 'exact') throw new PaymentRefused('unsupported_scheme')
}

function parsed<T extends z.ZodType>(schema: T, given: unknown): z.output<T> {
  const read = schema.safeParse(given)
  if (!read.success) throw new PaymentRefused('invalid_payload')
  return read.data
}

function sessionOf(given: unknown): PresentedPayment {
  if (typeof given !== 'string' || given.length === 0 || given.length > 100)
    throw new PaymentRefused('payment_session_not_found')
  return { kind: 'session', sessionId: given.toLowerCase() }
}

function jsonOf(header: string): unknown {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(header)) throw new PaymentRefused('invalid_payload')
  try {
    return parseJson(Buffer.from(header, 'base64'))
  } catch {
    throw new PaymentRefused('invalid_payload')
  }
}
