import type { IncomingHttpHeaders } from 'node:http'
import { withPaymentSession } from '@parley/wire/codecs/parley/metadata'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'

const headerMaxChars = 16 * 1024

/** Returns the payment in the headers of a request as metadata of a message (spec/payments.md#x-payment). */
export function paymentIn(headers: IncomingHttpHeaders): JsonObject | undefined {
  const payment = headers['payment-signature'] ?? headers['x-payment']
  if (typeof payment === 'string') {
    const payload = jsonObjectOf(decoded(payment))
    return { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload ?? null }
  }
  const session = headers['x-payment-session']
  return typeof session === 'string' ? withPaymentSession(session) : undefined
}

const decoded = (header: string) =>
  header.length > headerMaxChars ? '' : Buffer.from(header.trim(), 'base64').toString('utf8')
