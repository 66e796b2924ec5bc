import type { Payments } from '@parley/engine/payments/payments'
import { requirementsOf } from '@parley/engine/payments/x402/x402'
import type { TaskRecord } from '@parley/engine/store/store'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { type Price, withAmount } from '@parley/wire/model/price'
import type { JsonObject, Part } from '@parley/wire/model/task'
import type { Agent } from '../../author/agent.ts'
import { callersMessages } from '../../author/callers-messages.ts'
import { MalformedOutputError } from '../../author/collect-output.ts'
import { allPrices, priceOf } from '../../author/price-of.ts'

/** The amount and the reason of a payment that a handler requested. */
export type PaymentRequest = NonNullable<TaskRecord['asked']>

/** Returns the terms of a payment requested during a task, which are the terms of the skill's price with another amount. */
export function requestedTerms(
  agent: Agent,
  payments: Payments,
  record: TaskRecord,
  { amount }: PaymentRequest,
): Price[] {
  const named = callersMessages(record.history).findLast(
    ({ metadata }) => typeof skillIdIn(metadata) === 'string',
  )
  const own = priceOf(agent, named ?? {})
  return payments.acceptedTerms(withAmount(own.length > 0 ? own : allPrices(agent).slice(0, 1), amount))
}

/**
 * Makes the data part of `payment-required`: the amount and x402 requirements in atomic units (spec/payments.md#unpaid-calls).
 * @throws MalformedOutputError when the handler requested a malformed amount
 */
export function paymentPrompt(
  agent: Agent,
  payments: Payments,
  record: TaskRecord,
  request: PaymentRequest,
): Part {
  try {
    const terms = requestedTerms(agent, payments, record, request)
    const data = {
      amount: request.amount,
      reason: request.reason,
      decimals: terms[0]?.decimals ?? 0,
      accepts: terms.map(requirementsOf),
      ...(payments.sandbox && { sandbox: true }),
    }
    return { kind: 'data', data: data as unknown as JsonObject }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new MalformedOutputError(`the amount of requirePayment ${error.message}`)
  }
}
