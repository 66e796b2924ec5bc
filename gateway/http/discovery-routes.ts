import { agentId, keyId } from '@parley/kit/did/did'
import { sendCacheable } from '@parley/kit/http/send-cacheable'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import type { Registry } from '../registry/registry.ts'
import { cardOut, skillOut } from './entry-out.ts'

export interface GatewayIdentity {
  version: string
  gatewayUrl: string
  /** Undefined: the gateway has no identity (SERVICE_GATEWAY_*). */
  did: string | undefined
}

/** Card and skills of the gateway itself, and the cards of its agents with its own address in `url`; public. */
export function addDiscoveryRoutes(app: FastifyInstance, registry: Registry, gateway: GatewayIdentity): void {
  const { gatewayUrl } = gateway
  app.get('/.well-known/agent.json', (request, reply) =>
    sendCacheable(request, reply, JSON.stringify(gatewayCard(registry, gateway))),
  )
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

/** The skills of all admitted agents; `agent` says whose each is. */
function allSkills(registry: Registry) {
  return registry
    .admitted()
    .flatMap((entry) => entry.skills.map((skill) => ({ ...skillOut(entry, skill), agent: entry.slug })))
}

/** By id, else by name. Several agents may list the same id: `agent` (a slug) selects one, otherwise the first listed is returned. */
function skillDetail(registry: Registry, idOrName: string, agent: string | undefined) {
  const skills = allSkills(registry).filter((skill) => agent === undefined || skill.agent === agent)
  const skill = skills.find(({ id }) => id === idOrName) ?? skills.find(({ name }) => name === idOrName)
  if (skill === undefined) throw new ParleyError('SkillNotFound', { data: { reason: 'skill' } })
  return { ...skill, has_documentation: typeof skill['documentation_path'] === 'string' }
}

function gatewayCard(registry: Registry, { version, gatewayUrl, did }: GatewayIdentity) {
  const skills = registry.admitted().flatMap((entry) => entry.skills.map((skill) => ({ entry, skill })))
  const modes = (name: 'input_modes' | 'output_modes') => [
    ...new Set(skills.flatMap(({ skill }) => skill[name])),
  ]
  return {
    // The reference implementation's clients require an id; without an identity the address makes one that does not change.
    id: did === undefined ? keyId(Buffer.from(gatewayUrl)) : agentId(did),
    ...(did !== undefined && { did }),
    name: 'parley',
    description: 'A gateway to many agents',
    url: gatewayUrl,
    version,
    protocolVersion: '1.0.0',
    kind: 'agent',
    // No DID extension: its readers verify artifacts with that key, and artifacts are signed by the agents.
    capabilities: { streaming: true, pushNotifications: false, stateTransitionHistory: true, extensions: [] },
    skills: skills.map(({ entry, skill }) => ({
      id: skill.id,
      name: skill.name,
      description: skill.description,
      tags: skill.tags,
      inputModes: skill.input_modes,
      outputModes: skill.output_modes,
      agent: entry.slug,
    })),
    defaultInputModes: modes('input_modes'),
    defaultOutputModes: modes('output_modes'),
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'OAuth 2.0 access token' } },
    security: [{ bearer: ['agent:read', 'agent:write'] }],
  }
}
