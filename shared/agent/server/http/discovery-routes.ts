import { cardSender } from '@parley/kit/http/card-sender'
import { addOpenApiRoute } from '@parley/kit/http/openapi-route'
import type { Log } from '@parley/kit/process/log'
import { version } from '@parley/kit/process/version'
import { cardPaths } from '@parley/wire/codecs/dialects'
import { skillDetailOut, skillSummaryOut } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Skill } from '../../author/agent.ts'
import { agentCard, documentationPath } from '../methods/agent-card.ts'
import { inputSchemaOf, publishedInput } from '../methods/input-schema.ts'
import type { Services } from '../methods/method.ts'
import { baseUrlFor } from './base-url-for.ts'

type DiscoveryServices = Pick<Services, 'agent' | 'did' | 'baseUrl' | 'payments' | 'signCard'> & { log: Log }

/** Adds the public routes of the card, the skills with their documentation, and the OpenAPI document (spec/discovery.md#skills). */
export function addDiscoveryRoutes(
  app: FastifyInstance,
  { agent, did, baseUrl, payments: prices, signCard: sign, log }: DiscoveryServices,
): void {
  const send = cardSender()
  for (const skill of agent.skills) logUnpublished(skill, log)
  for (const path of cardPaths())
    app.get(path, (request, reply) =>
      send(request, reply, path, agentCard(agent, { did, url: baseUrl(), prices, sign })),
    )
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
  const { name: title, description } = agent
  const address = (request: FastifyRequest) => baseUrlFor(request, baseUrl())
  addOpenApiRoute(app, { title, description, version, address })
}

function logUnpublished(skill: Skill, log: Log): void {
  const input = publishedInput(skill)
  if (input !== undefined && 'fault' in input)
    log.warn({ skill: skill.id }, `the input of the skill is not published: its schema ${input.fault}`)
}

const listingOf = (skill: Skill) => ({
  ...skill,
  documentationPath: documentationPath(skill),
  inputSchema: inputSchemaOf(skill),
})

function requireSkill(skills: readonly Skill[], idOrName: string): Skill {
  const skill = skills.find(({ id }) => id === idOrName) ?? skills.find(({ name }) => name === idOrName)
  if (skill === undefined) throw skillNotFound('skill')
  return skill
}

const skillNotFound = (reason: string) => new ParleyError('SkillNotFound', { data: { reason } })
