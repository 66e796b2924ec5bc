import { isObject } from '../../shared/jsonrpc/envelope.ts'
import type { AgentEntry } from '../registry/entry.ts'

/** Whether the agent's card names a price, of its own or of a skill. */
export function charges({ card }: Pick<AgentEntry, 'card'>): boolean {
  const { executionCost, skills } = card
  if (isPrice(executionCost)) return true
  return Array.isArray(skills) && skills.some((skill) => isObject(skill) && isPrice(skill['executionCost']))
}

/** One way to pay, or a list of them. */
const isPrice = (cost: unknown) => isObject(cost) || (Array.isArray(cost) && cost.length > 0)
