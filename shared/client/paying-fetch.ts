import { BodyTooLarge, boundedText } from '@parley/kit/net/bounded-text'
import type { ClientOptions, OutgoingRequest } from './transport.ts'

/** One way to pay, in x402's words; `amount` is in atomic units. */
export interface PaymentOption {
  scheme: string
  network: string
  asset: string
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  extra: { name: string; version: string }
}

/** What an agent answered with HTTP 402. */
export interface PaymentAsked {
  /** A code: `payment_required`, or why a payment was refused. */
  error: string
  accepts: PaymentOption[]
  resource: { url: string; description: string; mimeType: string } | undefined
  /** The agent says that it takes test money. */
  sandbox: boolean
  /** The agent that the gateway chose. */
  agent: string | undefined
}

/**
 * Decides whether to pay, and gives the x402 payment (its JSON) that is sent with the same message again; undefined leaves
 * it at the 402. What it throws ends the request.
 */
export type Payer = (asked: PaymentAsked) => Promise<object | undefined>

type Send = NonNullable<ClientOptions['fetch']>

const bodyMaxBytes = 64 * 1024

/** A `fetch` for `AgentClient` that pays once where an agent asks for it; a second 402 is the answer. */
export function payingFetch(payer: Payer, send: Send = fetch): Send {
  return async (url, init) => {
    const response = await send(url, init)
    if (response.status !== 402) return response
    const text = await textOf(response)
    const asked = askedIn(text, response.headers)
    const payment = asked === undefined ? undefined : await payer(asked)
    if (payment !== undefined) return send(url, withPayment(init, payment))
    // It was read here; whoever is given it reads it again.
    return new Response(text, { status: 402, headers: response.headers })
  }
}

function withPayment(init: OutgoingRequest, payment: object): OutgoingRequest {
  const header = Buffer.from(JSON.stringify(payment), 'utf8').toString('base64')
  return { ...init, headers: { ...init.headers, 'payment-signature': header } }
}

/** Version 2 is in the header; the body may be for clients of version 1, which know networks by other names. */
function askedIn(text: string, headers: Headers): PaymentAsked | undefined {
  const body = objectOf(text)
  const header = headers.get('payment-required')
  const asked = header === null ? body : objectOf(Buffer.from(header, 'base64').toString('utf8'))
  if (asked === undefined || !Array.isArray(asked['accepts'])) return undefined
  return {
    error: typeof asked['error'] === 'string' ? asked['error'] : 'payment_required',
    accepts: asked['accepts'].filter(isOption).slice(0, 20),
    resource: asked['resource'] as PaymentAsked['resource'],
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
  const { scheme, network, asset, amount, payTo, maxTimeoutSeconds, extra } = (value ?? {}) as PaymentOption
  const texts = [network, asset, payTo, extra?.name, extra?.version]
  return (
    scheme === 'exact' &&
    texts.every((text) => typeof text === 'string') &&
    typeof amount === 'string' &&
    /^\d{1,78}$/.test(amount) &&
    Number.isInteger(maxTimeoutSeconds)
  )
}

function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
