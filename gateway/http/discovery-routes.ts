import { agentId, keyId } from '@parley/kit/did/did'
import { cardSender } from '@parley/kit/http/card-sender'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { sendCacheable } from '@parley/kit/http/send-cacheable'
import {
  cardAnswer,
  cardVersionText,
  gatewaySkillAnswer,
  gatewaySkillListAnswer,
} from '@parley/wire/codecs/answers/skills'
import { cardPaths, defaultDialect } from '@parley/wire/codecs/dialects'
import { decisionRecord, negotiation } from '@parley/wire/codecs/extensions'
import { cardSkillOf, listedSkillDetail } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import type { AgentCard } from '@parley/wire/model/card'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { AgentDirectory } from '../registry/agent-policies.ts'
import { agentCard, type CardServer } from './agent-card.ts'
import { cardOut, skillOut } from './entry-out.ts'

export interface GatewayIdentity extends CardServer {
  version: string
}

const card = {
  description: cardVersionText,
  tag: 'discovery',
  access: 'optional',
  responses: {
    200: { description: 'The card', json: cardAnswer, headers: { etag: 'The version of the card' } },
    304: { description: 'The client has the current version' },
  },
} satisfies Partial<OperationDescription>
const gatewayCardApi: OperationDescription = { ...card, summary: 'The agent card of the gateway' }
const agentCardApi: OperationDescription = { ...card, summary: 'The agent card of an agent' }

const skillsApi: OperationDescription = {
  summary: 'List the skills of all agents',
  tag: 'discovery',
  access: 'optional',
  responses: { 200: { description: 'The skills', json: gatewaySkillListAnswer } },
}

const skillApi: OperationDescription = {
  summary: 'Read a skill by its ID or name',
  tag: 'discovery',
  access: 'optional',
  query: z.object({
    agent: z.string().optional().describe('The slug of the agent, if several list the skill'),
  }),
  responses: { 200: { description: 'The skill', json: gatewaySkillAnswer } },
  errors: ['SkillNotFound'],
}

/** Returns the agents that the sender of the request may see. */
export type AgentsFor = (request: FastifyRequest) => Promise<AgentDirectory>

/** Adds the public routes: the gateway's card and skills, and the agents' cards with their gateway URLs. */
export function addDiscoveryRoutes(
  app: FastifyInstance,
  agentsFor: AgentsFor,
  gateway: GatewayIdentity,
): void {
  const { gatewayUrl } = gateway
  const send = cardSender({ perCaller: true })
  for (const path of cardPaths()) {
    app.get(path, { config: { api: gatewayCardApi } }, async (request, reply) =>
      send(request, reply, path, gatewayCard(await agentsFor(request), gateway)),
    )
    // The registry's copy of this card is the one that the gateway vouches for in the proof of the entry.
    if (defaultDialect.cardPaths.includes(path)) continue
    const options = { config: { api: agentCardApi } }
    app.get<{ Params: { slug: string } }>(`/agents/:slug${path}`, options, async (request, reply) => {
      const entry = (await agentsFor(request)).bySlug(request.params.slug)
      if (entry === undefined) throw agentNotFound()
      return send(request, reply, path, agentCard(entry, gateway))
    })
  }
  app.get('/agent/skills', { config: { api: skillsApi } }, async (request) => {
    const skills = allSkills(await agentsFor(request))
    return { skills, total: skills.length }
  })
  type SkillRoute = { Params: { id: string }; Querystring: { agent?: string } }
  app.get<SkillRoute>('/agent/skills/:id', { config: { api: skillApi } }, async (request) =>
    skillDetail(await agentsFor(request), request.params.id, request.query.agent),
  )
  const ownCard = { config: { api: agentCardApi } }
  app.get<{ Params: { slug: string } }>(
    '/agents/:slug/.well-known/agent.json',
    ownCard,
    async (request, reply) => {
      const entry = (await agentsFor(request)).bySlug(request.params.slug)
      if (entry === undefined) throw agentNotFound()
      return sendCacheable(request, reply, JSON.stringify(cardOut(entry, gatewayUrl)), { perCaller: true })
    },
  )
}

const agentNotFound = () => new ParleyError('NotFound', { data: { reason: 'agent' } })

/** Returns the skills of all admitted agents, each with its agent's slug. */
function allSkills(agents: AgentDirectory) {
  return agents
    .admitted()
    .flatMap((entry) => entry.skills.map((skill) => ({ ...skillOut(entry, skill), agent: entry.slug })))
}

/**
 * Finds a skill by id or, if no skill has this id, by name. If several agents list it, `agent` (a slug) selects one of
 * them. Without `agent`, the first is returned.
 */
function skillDetail(agents: AgentDirectory, idOrName: string, agent: string | undefined) {
  const skills = allSkills(agents).filter((skill) => agent === undefined || skill.agent === agent)
  const skill = skills.find(({ id }) => id === idOrName) ?? skills.find(({ name }) => name === idOrName)
  if (skill === undefined) throw new ParleyError('SkillNotFound', { data: { reason: 'skill' } })
  return listedSkillDetail(skill)
}

/** Describes the gateway as a single agent with the skills of all agents. The agents sign the artifacts. */
function gatewayCard(
  agents: AgentDirectory,
  { version, gatewayUrl, did, tokenUrl, signCard }: GatewayIdentity,
): AgentCard {
  return {
    // Clients of the reference implementation require an id. Without an identity, it is derived from the address.
    id: did === undefined ? keyId(Buffer.from(gatewayUrl)) : agentId(did),
    did,
    name: 'parley',
    description: 'A gateway to many agents',
    url: gatewayUrl,
    version,
    streaming: true,
    // Webhooks are those of the agents.
    pushNotifications: true,
    signsArtifacts: false,
    extensions: [negotiation, decisionRecord],
    tokenUrl,
    sign: signCard,
    skills: agents
      .admitted()
      .flatMap((entry) => entry.skills.map((skill) => ({ ...cardSkillOf(skill), agent: entry.slug }))),
  }
}
