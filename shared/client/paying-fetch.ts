import { BodyTooLarge, boundedText } from '@parley/kit/net/bounded-text'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { ClientOptions, OutgoingRequest } from './transport.ts'

/** One way to pay, with the field names of x402. */
export interface PaymentOption {
  scheme: string
  network: string
  asset: string
  /** In atomic units, a decimal text. */
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  extra: { name: string; version: string }
}

/** The HTTP 402 response of an agent that requires payment. */
export interface PaymentRequirements {
  /** A code: `payment_required`, or why a payment was refused. */
  error: string
  accepts: PaymentOption[]
  resource: { url: string; description: string; mimeType: string } | undefined
  /** The agent accepts test money. */
  sandbox: boolean
  /** The agent that the gateway chose. */
  agent: string | undefined
}

/**
 * Returns the x402 payment (its JSON) with which the same message is sent again, or undefined to decline: the 402 is then the
 * response. An error that it throws fails the request.
 */
export type Payer = (required: PaymentRequirements) => Promise<object | undefined>

type Send = NonNullable<ClientOptions['fetch']>

const bodyMaxBytes = 64 * 1024

/**
 * Returns a `fetch` for `AgentClient` that pays when an agent requires it (spec/payments.md#unpaid-calls). A request is paid at most once:
 * a second 402 is the response.
 * @throws whatever `payer` and `send` throw
 */
export function payingFetch(payer: Payer, send: Send = fetch): Send {
  return async (url, init) => {
    const response = await send(url, init)
    if (response.status !== 402) return response
    const text = await textOf(response)
    const required = requirementsIn(text, response.headers)
    const payment = required === undefined ? undefined : await payer(required)
    if (payment !== undefined) return send(url, withPayment(init, payment))
    // The body has been read: the caller gets a copy.
    return new Response(text, { status: 402, headers: response.headers })
  }
}

function withPayment(init: OutgoingRequest, payment: object): OutgoingRequest {
  const header = Buffer.from(JSON.stringify(payment), 'utf8').toString('base64')
  return { ...init, headers: { ...init.headers, 'payment-signature': header } }
}

/** Version 2 is in the header. The body may be version 1, in which networks have other names. */
function requirementsIn(text: string, headers: Headers): PaymentRequirements | undefined {
  const body = jsonObjectOf(text)
  const header = headers.get('payment-required')
  const required = header === null ? body : jsonObjectOf(Buffer.from(header, 'base64').toString('utf8'))
  const accepts: unknown = required?.['accepts']
  const resource: unknown = required?.['resource']
  if (required === undefined || !Array.isArray(accepts)) return undefined
  return {
    error: typeof required['error'] === 'string' ? required['error'] : 'payment_required',
    accepts: accepts.filter(isOption).slice(0, 20),
    resource: isResource(resource) ? resource : undefined,
    sandbox: body?.['sandbox'] === true,
    agent: headers.get('x-agent') ?? undefined,
  }
}

/** Empty when the body is too large to be payment requirements. */
async function textOf({ body }: Response): Promise<string> {
  try {
    return await boundedText(body, bodyMaxBytes)
  } catch (error) {
    if (error instanceof BodyTooLarge) return ''
    throw error
  }
}

function isOption(value: unknown): value is PaymentOption {
  if (!isObject(value) || !isObject(value['extra'])) return false
  const { scheme, network, asset, amount, payTo, maxTimeoutSeconds, extra } = value
  const texts = [network, asset, payTo, extra['name'], extra['version']]
  return (
    scheme === 'exact' &&
    texts.every(isText) &&
    typeof amount === 'string' &&
    /^\d{1,78}$/.test(amount) &&
    Number.isInteger(maxTimeoutSeconds)
  )
}

function isResource(value: unknown): value is NonNullable<PaymentRequirements['resource']> {
  if (!isObject(value)) return false
  const { url, description, mimeType } = value
  return [url, description, mimeType].every(isText)
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}
