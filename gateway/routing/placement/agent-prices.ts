import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { AgentEntry } from '../../registry/entry.ts'

/** Whether the card names a price for the agent or for one of its skills. */
export function isPaidAgent({ card }: Pick<AgentEntry, 'card'>): boolean {
  const { executionCost, skills } = card
  if (isPrice(executionCost)) return true
  return Array.isArray(skills) && skills.some((skill) => isObject(skill) && isPrice(skill['executionCost']))
}

/** Whether the card names a price for each skill, all of which are above zero. */
export function isAlwaysPaid({ card: { skills } }: Pick<AgentEntry, 'card'>): boolean {
  if (!Array.isArray(skills) || skills.length === 0) return false
  return skills.every((skill) => {
    const ways = isObject(skill) ? [skill['executionCost']].flat().flatMap(waysOf) : []
    return ways.length > 0 && ways.every(({ amount }) => typeof amount === 'string' && /[1-9]/.test(amount))
  })
}

/** A payment option or a list of them. */
const isPrice = (cost: unknown) => isObject(cost) || (Array.isArray(cost) && cost.length > 0)

/** All payment addresses on the card, in lower case. */
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
