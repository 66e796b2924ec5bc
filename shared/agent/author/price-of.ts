import { toAtomic } from '@parley/wire/model/amount'
import { inAdvance, type Price } from '@parley/wire/model/price'
import type { Agent } from './agent.ts'

interface Said {
  metadata?: Record<string, unknown> | undefined
}

const nothing: Price[] = []

/** True when something of the agent has a price, if only one that its handler asks later. */
export function isPaid(agent: Agent): boolean {
  return allPrices(agent).length > 0
}

export function allPrices({ executionCost, skills }: Agent): Price[] {
  return [executionCost, ...skills.map((skill) => skill.executionCost)].flatMap((prices) => prices ?? [])
}

/**
 * What the message costs: the price of the skill that it names (or of the only one), else the agent's. One that names no
 * skill of several pays what the dearest costs, for it may get that; one that names a skill that is not there costs
 * nothing, for it will be rejected.
 */
export function priceOf(agent: Agent, { metadata }: Said): Price[] {
  const { skills, executionCost = nothing } = agent
  const named = metadata?.['skill_id'] ?? metadata?.['skillId']
  if (typeof named === 'string') {
    const skill = skills.find(({ id }) => id === named)
    return skill === undefined ? nothing : (skill.executionCost ?? executionCost)
  }
  if (skills.length === 1) return skills[0]?.executionCost ?? executionCost
  return dearest([executionCost, ...skills.map((skill) => skill.executionCost ?? nothing)])
}

/** What card and negotiation show: the agent's price, else that of its dearest skill; undefined where all is free. */
export function shownPrice(agent: Agent): Price[] | undefined {
  const own = inAdvance(agent.executionCost ?? nothing)
  const prices =
    own.length > 0 ? own : inAdvance(dearest(agent.skills.map((one) => one.executionCost ?? nothing)))
  return prices.length > 0 ? prices : undefined
}

/** By the first way to pay of each: assets are not exchanged here. */
function dearest(prices: readonly Price[][]): Price[] {
  const worth = ([first]: readonly Price[]) => (first === undefined ? -1n : toAtomic(first.amount, 36))
  return prices.reduce((best, one) => (worth(one) > worth(best) ? one : best), nothing)
}
