import {
  agentPaymentList,
  type paymentList,
  type paymentListQuery,
} from '@parley/wire/codecs/answers/operator/usage'
import { cleanLine } from '@parley/wire/model/clean-text'
import { timestampOfServer } from '@parley/wire/model/timestamp'
import type { z } from 'zod'
import { type AgentList, type MergedListSources, readMergedList } from '../merged-list.ts'
import type { CallerView } from '../view.ts'

type AgentPayment = z.output<typeof agentPaymentList>['payments'][number]
type Query = z.output<typeof paymentListQuery>

const textMaxChars = 512

const agentList: AgentList<z.output<typeof agentPaymentList>, AgentPayment> = {
  path: 'operator/payments',
  group: 'payments.read',
  schema: agentPaymentList,
  rowsOf: ({ payments }) => payments,
  clean: cleanPayment,
  positionOf: ({ created_at: at, payment_id: id }) => ({ at, id }),
}

/** The payments of all agents that a view contains, newest first (spec/operator.md#payments). */
export class AgentPayments {
  readonly #options: MergedListSources

  constructor(options: MergedListSources) {
    this.#options = options
  }

  /**
   * The counts include the payments of all pages.
   * @throws ParleyError InvalidParams, NotFound for an agent that does not exist
   */
  async list(view: CallerView, query: Query): Promise<z.output<typeof paymentList>> {
    const { answers, items, next_cursor, unread } = await readMergedList(
      agentList,
      this.#options,
      view,
      query,
    )
    const counts = sumOf(answers.map(({ value }) => value.counts))
    return { payments: items, counts, next_cursor, unread }
  }
}

function sumOf(all: readonly Record<string, number>[]): Record<string, number> {
  const sums = new Map<string, number>()
  for (const counts of all)
    for (const [state, count] of Object.entries(counts).slice(0, 50)) {
      const name = cleanLine(state, 40)
      sums.set(name, (sums.get(name) ?? 0) + Math.max(0, count))
    }
  return Object.fromEntries(sums)
}

/** An agent may have sent any text. */
function cleanPayment(payment: AgentPayment): AgentPayment {
  const texts = Object.entries(payment).map(([name, value]) => [
    name,
    typeof value === 'string' ? cleanLine(value, textMaxChars) : value,
  ])
  return { ...payment, ...Object.fromEntries(texts), created_at: timestampOfServer(payment.created_at) }
}
