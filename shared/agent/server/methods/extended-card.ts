import { ParleyError } from '@parley/wire/errors'
import { agentCard } from '../discovery/agent-card.ts'
import type { Answer, Services } from './method.ts'

/** The public card and what the author adds for callers with agent:read; -32007 when nothing is published. */
export async function getExtendedCard({ agent, did, baseUrl }: Services): Promise<Answer> {
  const { extendedCard } = agent
  if (extendedCard === undefined) throw new ParleyError('AuthenticatedExtendedCardNotConfigured')
  const { skills, ...fields } = extendedCard
  const more = { ...agent, skills: [...agent.skills, ...(skills ?? [])] }
  return { result: { ...agentCard(more, { did, url: baseUrl() }), ...fields } }
}
