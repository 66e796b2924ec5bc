import type { Agent } from '../handler/agent.ts'
import { callersMessages } from '../handler/callers-messages.ts'
import { MalformedOutputError } from '../handler/collect-output.ts'
import { allPrices, priceOf } from '../handler/price-of.ts'
import type { Payments } from '../payments/payments.ts'
import { type Price, withAmount } from '../payments/price.ts'
import { requirementsOf } from '../payments/x402.ts'
import type { JsonObject, Part } from '../protocol/task.ts'
import type { TaskRecord } from '../store/store.ts'

export type Asked = NonNullable<TaskRecord['asked']>

/** The ways to pay what a handler asks in the middle of a task: those of its skill's price, with another amount. */
export function termsAsked(agent: Agent, payments: Payments, record: TaskRecord, { amount }: Asked): Price[] {
  const said = callersMessages(record.history)
  const named = said.findLast(
    ({ metadata }) => typeof (metadata?.['skill_id'] ?? metadata?.['skillId']) === 'string',
  )
  const own = priceOf(agent, named ?? {})
  return payments.asked(withAmount(own.length > 0 ? own : allPrices(agent).slice(0, 1), amount))
}

/**
 * The data part of `payment-required`: how much, and how (x402 requirements, in atomic units).
 * @throws MalformedOutputError when the handler asked for what is no amount
 */
export function paymentPrompt(agent: Agent, payments: Payments, record: TaskRecord, asked: Asked): Part {
  try {
    const terms = termsAsked(agent, payments, record, asked)
    const data = {
      amount: asked.amount,
      reason: asked.reason,
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
