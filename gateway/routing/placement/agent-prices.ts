import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { AgentEntry } from '../../registry/entry.ts'

/** Whether the agent's card names a price, of its own or of a skill. */
export function isPaidAgent({ card }: Pick<AgentEntry, 'card'>): boolean {
  const { executionCost, skills } = card
  if (isPrice(executionCost)) return true
  return Array.isArray(skills) && skills.some((skill) => isObject(skill) && isPrice(skill['executionCost']))
}

/** One way to pay, or a list of them. */
const isPrice = (cost: unknown) => isObject(cost) || (Array.isArray(cost) && cost.length > 0)

/** The addresses that the agent's card names for payments, lower case: of the agent, of its skills and of all ways to pay. */
export function payeesOf({ card }: Pick<AgentEntry, 'card'>): Set<string> {
  const { executionCost, skills } = card
  const ofSkills = Array.isArray(skills)
    ? skills.map((skill) => (isObject(skill) ? skill['executionCost'] : undefined))
    : []
  const ways = [executionCost, ...ofSkills].flat().flatMap(waysOf)
  return new Set(ways.flatMap(({ payTo }) => (typeof payTo === 'string' ? payTo.toLowerCase() : [])))
}

function waysOf(cost: unknown): Record<string, unknown>[] {
  if (!isObject(cost)) return []
  const { options } = cost
  return [cost, ...(Array.isArray(options) ? options.filter(isObject) : [])]
}
