import type { CallToolResult } from '@modelcontextprotocol/server'
import { networkOfVersion1 } from '@parley/engine/payments/x402/version-1-networks'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanLine, cleanObject } from '@parley/wire/model/clean-text'
import { isJsonObject } from '@parley/wire/model/json-text'
import type { PaymentSession } from '@parley/wire/model/payment'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'
import type { CallerCalls } from '../calls/agent-calls.ts'
import type { AgentTask } from './task-results.ts'

/** The keys of x402 over MCP (spec/mcp.md#payments). */
const paymentKey = 'x402/payment'
const taskPattern = /^parley:\/\/tasks\/([^/?#]{1,256})$/

/** What a tool call requires to be paid. */
export interface Charge {
  /** The terms: the body of HTTP 402. */
  terms: JsonObject
  /** The task that waits for the payment; undefined if the message created none. */
  taskId?: string | undefined
  /** The session that a person can pay on a page. */
  session?: PaymentSession | undefined
  meta?: Record<string, unknown>
}

/** Returns the payment in the `_meta` of a call. */
export function paymentIn(meta: unknown): unknown {
  return isObject(meta) ? meta[paymentKey] : undefined
}

/** Returns the task that a payment is for: x402 version 2 repeats the resource in the payment. */
export function taskOfPayment(payment: unknown): string | undefined {
  const resource = isObject(payment) ? payment['resource'] : undefined
  const url = isObject(resource) ? resource['url'] : undefined
  return typeof url === 'string' ? taskPattern.exec(url)?.[1] : undefined
}

/** Returns the terms in the error of an unpaid message. */
export function termsIn({ status, data, headers }: ParleyError): JsonObject | undefined {
  if (status !== 402) return undefined
  const header = headers['payment-required']
  return header === undefined ? (data as JsonObject) : (decoded(header) ?? (data as JsonObject))
}

/** The message that pays for a task adds nothing else to it. */
export const payingParts = [{ kind: 'text' as const, text: 'Payment for this task' }]

/** Returns the terms of a task that waits for a payment. An unpaid message to it changes nothing and is refused with them. */
export async function paymentTerms(
  { task, agent }: AgentTask,
  calls: Pick<CallerCalls, 'send'>,
): Promise<JsonObject | undefined> {
  const { required } = task.status.payment ?? {}
  if (required !== undefined) return required
  const message = { parts: payingParts, taskId: task.id }
  return calls.send({ agent, message }, { waitMs: 0 }).then(
    () => undefined,
    (error: unknown) => termsIn(ParleyError.from(error)),
  )
}

function decoded(header: string): JsonObject | undefined {
  try {
    const terms: unknown = JSON.parse(Buffer.from(header, 'base64').toString('utf8'))
    return isJsonObject(terms) ? terms : undefined
  } catch {
    return undefined
  }
}

/** Returns the result that x402 defines for MCP: the terms as structured content and as text, with `isError`. */
export function paymentRequiredResult({ terms, taskId, session, meta }: Charge): CallToolResult {
  const required = version2(cleanObject(terms), taskId)
  const ways = [
    'Payment is required: pay by x402 and call the tool again with the payment in _meta["x402/payment"].',
    ...(session === undefined ? [] : [pageText(session, taskId)]),
  ]
  return {
    content: [
      { type: 'text', text: JSON.stringify(required) },
      { type: 'text', text: ways.join(' ') },
    ],
    structuredContent: required,
    isError: true,
    _meta: {
      ...meta,
      ...(session !== undefined && {
        'parley/payment_page': session.captureUrl,
        'parley/payment_session': session.id,
      }),
    },
  }
}

function pageText({ captureUrl, id }: PaymentSession, taskId: string | undefined): string {
  const next =
    taskId === undefined
      ? `repeat the request with payment_session "${id}"`
      : `call answer_task with task_id "${taskId}" and payment_session "${id}"`
  return `Or let the user pay at ${captureUrl} and then ${next}.`
}

/** Clients of MCP read version 2, in which networks have CAIP-2 names. */
function version2(terms: JsonObject, taskId: string | undefined): JsonObject {
  const { accepts, error, extensions, resource } = terms
  const offers = Array.isArray(accepts) ? accepts.filter(isObject) : []
  const first: unknown = offers[0]
  return {
    x402Version: 2,
    error: typeof error === 'string' ? error : 'Payment required',
    resource: resourceOf(resource, isObject(first) ? first : {}, taskId),
    accepts: offers.map((offer) => withoutVersion1(offer as JsonObject)),
    ...(isObject(extensions) && { extensions: extensions as JsonObject }),
  }
}

function resourceOf(
  resource: JsonValue | undefined,
  offer: Record<string, unknown>,
  taskId: string | undefined,
) {
  const { url, description, mimeType }: Record<string, unknown> = isObject(resource)
    ? resource
    : { ...offer, url: offer['resource'] }
  const address = taskId === undefined ? url : `parley://tasks/${encodeURIComponent(taskId)}`
  return {
    url: lineOf(address, 'parley://tools'),
    description: lineOf(description, 'A call of an agent'),
    mimeType: lineOf(mimeType, 'application/json'),
  }
}

const lineOf = (value: unknown, otherwise: string): string =>
  typeof value === 'string' ? cleanLine(value, 2048) : otherwise

function withoutVersion1(offer: JsonObject): JsonObject {
  const { maxAmountRequired, resource: _, description: _d, mimeType: _m, outputSchema: _o, ...rest } = offer
  const { network, amount } = rest
  return {
    ...rest,
    ...(typeof network === 'string' && { network: networkOfVersion1(network) ?? network }),
    ...(amount === undefined && maxAmountRequired !== undefined && { amount: maxAmountRequired }),
  }
}
