import { WindowBudget } from '@parley/kit/http/window-budget'
import { ParleyError } from '@parley/wire/errors'
import type { CallerView } from './view.ts'

/** The requests to agents that one caller may cause per minute. */
const perMinute = { caller: 5000, operator: 100_000 }
const windowMs = 60_000
const callersMax = 10_000

/** Bounds the requests to agents that the requests of a caller cause, because one request may read 500 agents. */
export class ReadBudget {
  readonly #budget = new WindowBudget({ windowMs, keysMax: callersMax })

  /** @throws ParleyError TooManyRequests */
  spend({ caller, owner }: Pick<CallerView, 'caller' | 'owner'>, agents: number): void {
    const isOperator = owner === undefined
    const max = isOperator ? perMinute.operator : perMinute.caller
    const waitMs = this.#budget.spend(`${isOperator ? 'operator' : 'caller'} ${caller}`, agents, max)
    if (waitMs === undefined) return
    throw new ParleyError('TooManyRequests', {
      message: `Your requests may read ${max} agents per minute: name one agent with ?agent=, or try again later`,
      data: { reason: 'agents_read' },
      headers: { 'retry-after': String(Math.max(1, Math.ceil(waitMs / 1000))) },
    })
  }
}
