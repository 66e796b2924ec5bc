import type { Payments } from '@parley/engine/payments/payments'
import { PaymentRequired } from '@parley/engine/payments/x402/payment-refused'
import { requirementsOf } from '@parley/engine/payments/x402/x402'
import type { PaymentTerms } from '@parley/engine/store/payment-store'
import type { TaskRecord } from '@parley/engine/store/store'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { inAdvance, type Price, withAmount } from '@parley/wire/model/price'
import type { JsonObject, Part } from '@parley/wire/model/task'
import type { Agent } from '../../author/agent.ts'
import { callersMessages } from '../../author/callers-messages.ts'
import { MalformedOutputError } from '../../author/collect-output.ts'
import { allPrices, priceOf } from '../../author/price-of.ts'

/** The amount and the reason of a payment that a handler requested. */
export type PaymentRequest = NonNullable<TaskRecord['asked']>

/** A request for a payment: the data part for clients of Parley, and the terms for clients of x402 over A2A. */
export interface PaymentPrompt {
  part: Part
  required: PaymentRequired
}

export interface PromptParts {
  agent: Agent
  payments: Payments
  /** The address of the agent, which the terms name. */
  url: string
}

/** Returns the terms of a payment requested during a task, which are the terms of the skill's price with another amount. */
function requestedTerms(
  { agent, payments }: Omit<PromptParts, 'url'>,
  record: TaskRecord,
  { amount }: PaymentRequest,
): Price[] {
  const named = callersMessages(record.history).findLast(
    ({ metadata }) => typeof skillIdIn(metadata) === 'string',
  )
  const own = priceOf(agent, named ?? {})
  return payments.acceptedTerms(withAmount(own.length > 0 ? own : allPrices(agent).slice(0, 1), amount))
}

/** Returns the terms of the payment that a task waits for. Empty if none is due. */
export function dueTerms(parts: Omit<PromptParts, 'url'>, record: TaskRecord): Price[] {
  const { agent, payments } = parts
  if (record.asked !== undefined) return inAdvance(requestedTerms(parts, record, record.asked))
  if (record.unpaid !== true) return []
  return payments.acceptedTerms(inAdvance(priceOf(agent, record.history[0] ?? {})))
}

/** The purpose of a payment, as x402 describes it. */
export function resourceOf({ description }: Agent, url: string) {
  return { url, description: description.slice(0, 500), mimeType: 'application/json' }
}

/** Makes the data part of `payment-required`: the amount and x402 requirements in atomic units. */
export function promptPart(
  terms: readonly PaymentTerms[],
  sandbox: boolean,
  { amount = terms[0]?.amount ?? '0', reason }: { amount?: string; reason: string },
): Part {
  const accepts = terms.map((one): JsonObject => ({ ...requirementsOf(one) }))
  const decimals = terms[0]?.decimals ?? 0
  return { kind: 'data', data: { amount, reason, decimals, accepts, ...(sandbox && { sandbox: true }) } }
}

/**
 * Requests the payment that a handler has requested (spec/payments.md#unpaid-calls).
 * @throws MalformedOutputError when the handler requested a malformed amount
 */
export function paymentPrompt(
  parts: PromptParts,
  record: TaskRecord,
  request: PaymentRequest,
): PaymentPrompt {
  const { agent, payments, url } = parts
  const { sandbox } = payments
  try {
    const terms = requestedTerms(parts, record, request)
    const resource = resourceOf(agent, url)
    const required = new PaymentRequired({ error: 'payment_required', resource, terms, sandbox })
    return { part: promptPart(terms, sandbox, request), required }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new MalformedOutputError(`the amount of requirePayment ${error.message}`)
  }
}

/** The reason in a request for the price of a message. */
export const priceReason = 'This task must be paid before it starts'

/** Requests the payment that a task waits for again, because the last one failed. */
export function failedPrompt(parts: PromptParts, record: TaskRecord, refusal: string): PaymentPrompt {
  const { agent, payments, url } = parts
  const { sandbox } = payments
  const terms = dueTerms(parts, record)
  const required = new PaymentRequired({ error: refusal, resource: resourceOf(agent, url), terms, sandbox })
  return { part: promptPart(terms, sandbox, record.asked ?? { reason: priceReason }), required }
}
