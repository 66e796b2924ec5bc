import { sendCacheable } from '@parley/kit/http/send-cacheable'
import type { Codec } from '@parley/wire/codecs/codec'
import { cardPaths, dialectOf, partsOf } from '@parley/wire/codecs/dialects'
import { skillDetailOut, skillSummaryOut } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import type { Skill } from '../../author/agent.ts'
import { agentCard, documentationPath } from '../methods/agent-card.ts'
import type { Services } from '../methods/method.ts'

type DiscoveryServices = Pick<Services, 'agent' | 'did' | 'baseUrl' | 'payments' | 'signCard'>

/** Adds the public routes of the card, the skills and their documentation (spec/discovery.md#skills). */
export function addDiscoveryRoutes(
  app: FastifyInstance,
  { agent, did, baseUrl, payments: prices, signCard: sign }: DiscoveryServices,
): void {
  for (const path of cardPaths()) {
    const modified = new Map<Codec, { json: string; at: Date }>()
    app.get(path, (request, reply) => {
      const codec = dialectOf({ ...partsOf(request.url), path, headers: request.headers })
      const card = agentCard(agent, { did, url: baseUrl(), prices, sign })
      const json = JSON.stringify(codec.writeCard(card, path))
      const known = modified.get(codec)
      const lastModified = known?.json === json ? known.at : new Date()
      modified.set(codec, { json, at: lastModified })
      return sendCacheable(request, reply, json, { vary: 'A2A-Version', lastModified })
    })
  }
  app.get('/agent/skills', async () => ({
    skills: agent.skills.map((skill) => skillSummaryOut(listingOf(skill))),
    total: agent.skills.length,
  }))
  app.get<{ Params: { id: string } }>('/agent/skills/:id', async (request) =>
    skillDetailOut(listingOf(requireSkill(agent.skills, request.params.id))),
  )
  app.get<{ Params: { id: string } }>('/agent/skills/:id/documentation', async (request, reply) => {
    const { documentation } = requireSkill(agent.skills, request.params.id)
    if (documentation === undefined) throw skillNotFound('documentation')
    return reply.type('text/markdown; charset=utf-8').send(documentation)
  })
}

const listingOf = (skill: Skill) => ({ ...skill, documentationPath: documentationPath(skill) })

function requireSkill(skills: readonly Skill[], idOrName: string): Skill {
  const skill = skills.find(({ id }) => id === idOrName) ?? skills.find(({ name }) => name === idOrName)
  if (skill === undefined) throw skillNotFound('skill')
  return skill
}

const skillNotFound = (reason: string) => new ParleyError('SkillNotFound', { data: { reason } })
