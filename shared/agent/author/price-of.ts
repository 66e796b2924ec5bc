import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { toAtomic } from '@parley/wire/model/amount'
import { inAdvance, type Price } from '@parley/wire/model/price'
import type { Agent } from './agent.ts'

interface MessageMetadata {
  metadata?: Record<string, unknown> | undefined
}

const nothing: Price[] = []

/** Whether the agent or one of its skills defines a price, even `"0"`, so that its handler may request payments. */
export function isPaid(agent: Agent): boolean {
  return allPrices(agent).length > 0
}

/** Whether every skill has a price that is paid in advance. */
export function isAlwaysPaid({ executionCost = nothing, skills }: Agent): boolean {
  const costs =
    skills.length === 0 ? [executionCost] : skills.map((one) => one.executionCost ?? executionCost)
  return costs.every((prices) => inAdvance(prices).length > 0)
}

export function allPrices({ executionCost, skills }: Agent): Price[] {
  return [executionCost, ...skills.map((skill) => skill.executionCost)].flatMap((prices) => prices ?? [])
}

/**
 * Returns a message's price: that of the skill it names (or of the only skill), else the agent's price. A message
 * that names none of several skills pays the highest price, because it may be handled by that skill. A message that names an
 * unknown skill costs nothing, because it will be rejected.
 */
export function priceOf(agent: Agent, { metadata }: MessageMetadata): Price[] {
  const { skills, executionCost = nothing } = agent
  const named = skillIdIn(metadata)
  if (typeof named === 'string') {
    const skill = skills.find(({ id }) => id === named)
    return skill === undefined ? nothing : (skill.executionCost ?? executionCost)
  }
  if (skills.length === 1) return skills[0]?.executionCost ?? executionCost
  return highest([executionCost, ...skills.map((skill) => skill.executionCost ?? nothing)])
}

/** The price on the card and in negotiation: the agent's, else the highest among its skills; undefined if all are free. */
export function publicPrice(agent: Agent): Price[] | undefined {
  const own = inAdvance(agent.executionCost ?? nothing)
  const prices =
    own.length > 0 ? own : inAdvance(highest(agent.skills.map((one) => one.executionCost ?? nothing)))
  return prices.length > 0 ? prices : undefined
}

/** Returns the highest price, comparing first alternatives. Amounts of different assets are compared as numbers. */
function highest(prices: readonly Price[][]): Price[] {
  const worth = ([first]: readonly Price[]) => (first === undefined ? -1n : toAtomic(first.amount, 36))
  return prices.reduce((best, one) => (worth(one) > worth(best) ? one : best), nothing)
}
