import { isObject } from '../../shared/jsonrpc/envelope.ts'
import type { AgentEntry } from '../registry/entry.ts'

/** Whether the agent's card names a price, of its own or of a skill. */
export function charges({ card }: Pick<AgentEntry, 'card'>): boolean {
  const { executionCost, skills } = card
  if (isObject(executionCost)) return true
  return Array.isArray(skills) && skills.some((skill) => isObject(skill) && isObject(skill['executionCost']))
}
