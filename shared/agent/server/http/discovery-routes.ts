import { cardSender } from '@parley/kit/http/card-sender'
import { addOpenApiRoute } from '@parley/kit/http/openapi-route'
import type { OperationDescription } from '@parley/kit/http/route-description'
import type { Log } from '@parley/kit/process/log'
import { version } from '@parley/kit/process/version'
import { cardAnswer, cardVersionText, skillAnswer, skillListAnswer } from '@parley/wire/codecs/answers/skills'
import { cardPaths } from '@parley/wire/codecs/dialects'
import { skillDetailOut, skillSummaryOut } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Skill } from '../../author/agent.ts'
import { agentCard, documentationPath } from '../methods/agent-card.ts'
import { inputSchemaOf, publishedInput } from '../methods/input-schema.ts'
import type { Services } from '../methods/method.ts'
import { baseUrlFor } from './base-url-for.ts'

const cardApi: OperationDescription = {
  summary: 'The agent card',
  description: cardVersionText,
  tag: 'discovery',
  access: 'public',
  responses: {
    200: { description: 'The card', json: cardAnswer, headers: { etag: 'The version of the card' } },
    304: { description: 'The client has the current version' },
  },
}

const skillsApi: OperationDescription = {
  summary: 'List the skills',
  tag: 'discovery',
  access: 'public',
  responses: { 200: { description: 'The skills', json: skillListAnswer } },
}

const skillApi: OperationDescription = {
  summary: 'Read a skill by its ID or name',
  tag: 'discovery',
  access: 'public',
  responses: { 200: { description: 'The skill', json: skillAnswer } },
  errors: ['SkillNotFound'],
}

const documentationApi: OperationDescription = {
  summary: 'Read the documentation of a skill',
  tag: 'discovery',
  access: 'public',
  responses: { 200: { description: 'The documentation', content: { 'text/markdown': z.string() } } },
  errors: ['SkillNotFound'],
}

type DiscoveryServices = Pick<Services, 'agent' | 'did' | 'baseUrl' | 'payments' | 'signCard'> & { log: Log }

/** Adds the public routes of the card, the skills with their documentation, and the OpenAPI document (spec/discovery.md#skills). */
export function addDiscoveryRoutes(
  app: FastifyInstance,
  { agent, did, baseUrl, payments: prices, signCard: sign, log }: DiscoveryServices,
): void {
  const send = cardSender()
  for (const skill of agent.skills) logUnpublished(skill, log)
  for (const path of cardPaths())
    app.get(path, { config: { api: cardApi } }, (request, reply) =>
      send(request, reply, path, agentCard(agent, { did, url: baseUrl(), prices, sign })),
    )
  app.get('/agent/skills', { config: { api: skillsApi } }, async () => ({
    skills: agent.skills.map((skill) => skillSummaryOut(listingOf(skill))),
    total: agent.skills.length,
  }))
  app.get<{ Params: { id: string } }>('/agent/skills/:id', { config: { api: skillApi } }, async (request) =>
    skillDetailOut(listingOf(requireSkill(agent.skills, request.params.id))),
  )
  const documented = { config: { api: documentationApi } }
  app.get<{ Params: { id: string } }>(
    '/agent/skills/:id/documentation',
    documented,
    async (request, reply) => {
      const { documentation } = requireSkill(agent.skills, request.params.id)
      if (documentation === undefined) throw skillNotFound('documentation')
      return reply.type('text/markdown; charset=utf-8').send(documentation)
    },
  )
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
