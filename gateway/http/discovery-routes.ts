import { agentId, keyId } from '@parley/kit/did/did'
import { sendCacheable } from '@parley/kit/http/send-cacheable'
import { cardPaths, dialectOf } from '@parley/wire/codecs/dialects'
import { listedSkillDetail, modesOf } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import type { AgentCard } from '@parley/wire/model/card'
import type { FastifyInstance } from 'fastify'
import type { Registry } from '../registry/registry.ts'
import { cardOut, skillOut } from './entry-out.ts'

export interface GatewayIdentity {
  version: string
  gatewayUrl: string
  /** Undefined if the gateway has no identity (SERVICE_GATEWAY_*). */
  did: string | undefined
}

/** Adds the public routes: the gateway's card and skills, and the agents' cards with their gateway URLs. */
export function addDiscoveryRoutes(app: FastifyInstance, registry: Registry, gateway: GatewayIdentity): void {
  const { gatewayUrl } = gateway
  for (const path of cardPaths())
    app.get(path, (request, reply) => {
      const codec = dialectOf({ path, headers: request.headers })
      return sendCacheable(request, reply, JSON.stringify(codec.writeCard(gatewayCard(registry, gateway))))
    })
  app.get('/agent/skills', async () => {
    const skills = allSkills(registry)
    return { skills, total: skills.length }
  })
  app.get<{ Params: { id: string }; Querystring: { agent?: string } }>(
    '/agent/skills/:id',
    async ({ params, query }) => skillDetail(registry, params.id, query.agent),
  )
  app.get<{ Params: { slug: string } }>('/agents/:slug/.well-known/agent.json', (request, reply) => {
    const entry = registry.bySlug(request.params.slug)
    if (entry === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
    return sendCacheable(request, reply, JSON.stringify(cardOut(entry, gatewayUrl)))
  })
}

/** Returns the skills of all admitted agents, each with its agent's slug. */
function allSkills(registry: Registry) {
  return registry
    .admitted()
    .flatMap((entry) => entry.skills.map((skill) => ({ ...skillOut(entry, skill), agent: entry.slug })))
}

/**
 * Finds a skill by id or, if no skill has this id, by name. If several agents list it, `agent` (a slug) selects one of
 * them. Without `agent`, the first is returned.
 */
function skillDetail(registry: Registry, idOrName: string, agent: string | undefined) {
  const skills = allSkills(registry).filter((skill) => agent === undefined || skill.agent === agent)
  const skill = skills.find(({ id }) => id === idOrName) ?? skills.find(({ name }) => name === idOrName)
  if (skill === undefined) throw new ParleyError('SkillNotFound', { data: { reason: 'skill' } })
  return listedSkillDetail(skill)
}

/** Describes the gateway as a single agent with the skills of all agents. The agents sign the artifacts. */
function gatewayCard(registry: Registry, { version, gatewayUrl, did }: GatewayIdentity): AgentCard {
  return {
    // Clients of the reference implementation require an id. Without an identity, it is derived from the address.
    id: did === undefined ? keyId(Buffer.from(gatewayUrl)) : agentId(did),
    did,
    name: 'parley',
    description: 'A gateway to many agents',
    url: gatewayUrl,
    version,
    streaming: true,
    pushNotifications: false,
    signsArtifacts: false,
    skills: registry.admitted().flatMap((entry) =>
      entry.skills.map((skill) => ({
        id: skill.id,
        name: skill.name,
        description: skill.description,
        tags: skill.tags,
        ...modesOf(skill),
        agent: entry.slug,
      })),
    ),
  }
}
