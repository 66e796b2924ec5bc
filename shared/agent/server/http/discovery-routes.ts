import { sendCacheable } from '@parley/kit/http/send-cacheable'
import { cardPaths, dialectOf } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import type { Agent, Skill } from '../../author/agent.ts'
import { agentCard, type PricesShown } from '../discovery/agent-card.ts'
import { findSkill, skillDetail, skillSummary } from '../discovery/skill-out.ts'

interface Discovered {
  agent: Agent
  did: string
  baseUrl: () => string
  prices?: PricesShown | undefined
}

/** Card, skills and their documentation; public (spec/discovery.md#skills). */
export function addDiscoveryRoutes(app: FastifyInstance, { agent, did, baseUrl, prices }: Discovered): void {
  for (const path of cardPaths())
    app.get(path, (request, reply) => {
      const codec = dialectOf({ path, headers: request.headers })
      const card = agentCard(agent, { did, url: baseUrl(), prices })
      return sendCacheable(request, reply, JSON.stringify(codec.writeCard(card)))
    })
  app.get('/agent/skills', async () => ({
    skills: agent.skills.map(skillSummary),
    total: agent.skills.length,
  }))
  app.get<{ Params: { id: string } }>('/agent/skills/:id', async (request) =>
    skillDetail(requireSkill(agent.skills, request.params.id)),
  )
  app.get<{ Params: { id: string } }>('/agent/skills/:id/documentation', async (request, reply) => {
    const { documentation } = requireSkill(agent.skills, request.params.id)
    if (documentation === undefined) throw skillNotFound('documentation')
    return reply.type('text/markdown; charset=utf-8').send(documentation)
  })
}

function requireSkill(skills: readonly Skill[], idOrName: string): Skill {
  const skill = findSkill(skills, idOrName)
  if (skill === undefined) throw skillNotFound('skill')
  return skill
}

const skillNotFound = (reason: string) => new ParleyError('SkillNotFound', { data: { reason } })
