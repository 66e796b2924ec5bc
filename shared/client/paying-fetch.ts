import { BodyTooLarge, boundedText } from '@parley/kit/net/bounded-text'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { ClientOptions, OutgoingRequest } from './transport.ts'

/** One payment option, with the field names of x402. */
export interface PaymentOption {
  scheme: string
  network: string
  asset: string
  /** In atomic units, as a decimal string. */
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  extra: { name: string; version: string }
}

/** The content of the HTTP 402 response from an agent that requires payment. */
export interface PaymentRequirements {
  /** The code `payment_required`, or the code of the reason why a payment was refused. */
  error: string
  accepts: PaymentOption[]
  resource: { url: string; description: string; mimeType: string } | undefined
  /** Whether the agent accepts test money. */
  sandbox: boolean
  /** The agent that the gateway selected. */
  agent: string | undefined
}

/**
 * Returns the x402 payment as JSON, with which the same message is sent again. If it returns undefined, the 402 becomes the
 * response. If it throws, the request fails with that error.
 */
export type Payer = (required: PaymentRequirements) => Promise<object | undefined>

type Send = NonNullable<ClientOptions['fetch']>

const bodyMaxBytes = 64 * 1024

/**
 * Returns a `fetch` for `AgentClient` that pays when an agent requires it
 * (spec/payments.md#unpaid-calls). A request is paid at most once, so
 * a second 402 is returned as the response.
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
    // The body has already been read, so the caller receives a copy.
    return new Response(text, { status: 402, headers: response.headers })
  }
}

function withPayment(init: OutgoingRequest, payment: object): OutgoingRequest {
  const header = Buffer.from(JSON.stringify(payment), 'utf8').toString('base64')
  return { ...init, headers: { ...init.headers, 'payment-signature': header } }
}

/** The header contains version 2. The body may use version 1, in which networks have other names. */
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

/** Returns an empty string if the body is too large for payment requirements. */
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
