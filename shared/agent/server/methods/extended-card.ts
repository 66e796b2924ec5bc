import { ParleyError } from '@parley/wire/errors'
import { agentCard } from '../discovery/agent-card.ts'
import type { Run } from './method.ts'

/** The public card with the author's additions; -32007 when the author publishes none. */
export const getExtendedCard: Run<'getExtendedCard'> = async ({ agent, did, baseUrl }) => {
  const { extendedCard } = agent
  if (extendedCard === undefined) throw new ParleyError('AuthenticatedExtendedCardNotConfigured')
  const { skills, ...more } = extendedCard
  const extended = { ...agent, skills: [...agent.skills, ...(skills ?? [])] }
  return { result: { ...agentCard(extended, { did, url: baseUrl() }), more } }
}
