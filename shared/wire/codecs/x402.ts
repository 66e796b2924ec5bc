import type { JsonObject, StatusPayment } from '../model/task.ts'

/** The metadata of messages of the x402 extension of A2A (spec/payments.md#x402-over-a2a). */
const [statusKey, requiredKey, payloadKey, receiptsKey, errorKey] = [
  'x402.payment.status',
  'x402.payment.required',
  'x402.payment.payload',
  'x402.payment.receipts',
  'x402.payment.error',
] as const

type Metadata = Readonly<Record<string, unknown>> | undefined

/** Returns the payment in the metadata of a caller's message, unread; undefined if there is none. */
export function submittedPaymentIn(metadata: Metadata): { payload: unknown } | undefined {
  const payload = metadata?.[payloadKey]
  const isSubmitted = payload !== undefined || metadata?.[statusKey] === 'payment-submitted'
  return isSubmitted ? { payload } : undefined
}

/** Whether the message refuses to pay. */
export function rejectsPayment(metadata: Metadata): boolean {
  return metadata?.[statusKey] === 'payment-rejected'
}

/** Returns the metadata without the signed payment, which is not stored. */
export function withoutPayload(metadata: JsonObject): JsonObject {
  if (metadata[payloadKey] === undefined) return metadata
  const { [payloadKey]: _payload, ...rest } = metadata
  return rest
}

const ofStatus = [statusKey, requiredKey, receiptsKey, errorKey]
const noticeMaxChars = 64 * 1024

/** Returns what the status message of another server states about payments; undefined if it states nothing or too much. */
export function paymentNoticeIn(metadata: JsonObject | undefined): JsonObject | undefined {
  const known = Object.entries(metadata ?? {}).filter(([key]) => ofStatus.some((one) => one === key))
  const notice: JsonObject = Object.fromEntries(known)
  return known.length > 0 && JSON.stringify(notice).length <= noticeMaxChars ? notice : undefined
}

/** Returns the metadata of a status message. */
export function paymentMetadata({ status, required, receipts, error }: StatusPayment): JsonObject {
  return {
    [statusKey]: status,
    ...(required !== undefined && { [requiredKey]: required }),
    ...(receipts !== undefined && { [receiptsKey]: receipts.map((receipt) => ({ ...receipt })) }),
    ...(error !== undefined && { [errorKey]: error }),
  }
}
