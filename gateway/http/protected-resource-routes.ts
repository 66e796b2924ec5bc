import type { TokenRecipient } from '@parley/kit/auth/authenticate'
import { proofAlgorithms } from '@parley/kit/auth/dpop'
import type { InnerCalls } from '@parley/kit/auth/inner-calls'
import {
  challengeWithMetadata,
  type ProtectedResource,
  resourceMetadataPath,
} from '@parley/kit/auth/protected-resource'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { sendCacheable } from '@parley/kit/http/send-cacheable'
import { partsOf } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { AgentsFor } from './discovery-routes.ts'

/** The metadata of a protected resource (RFC 9728, section 2). */
export const protectedResourceMetadata = z.object({
  resource: z.string(),
  resource_name: z.string(),
  authorization_servers: z.array(z.string()),
  scopes_supported: z.array(z.string()),
  bearer_methods_supported: z.array(z.string()),
  dpop_signing_alg_values_supported: z.array(z.string()),
})

const described = {
  summary: 'Metadata of a protected resource (RFC 9728)',
  description:
    'Names the OAuth server and the scopes of the gateway, of one of its interfaces or of an agent.',
  tag: 'oauth',
  access: 'public',
  responses: { 200: { description: 'The metadata', json: protectedResourceMetadata } },
} satisfies OperationDescription

/** The scopes that clients of all interfaces need. */
const scope = 'agent:read agent:write'
/** The interfaces of the gateway that have separate tokens, with their names for people. */
const interfaces = { '': 'Parley', '/mcp': 'Parley (MCP)', '/v1': 'Parley (OpenAI-compatible API)' } as const
const resourcePath = /^\/(?:mcp|v1|agents\/[\w.-]+(?:\/mcp)?)(?=\/|$)/

interface ProtectedResourceRoutes {
  gatewayUrl: string
  /** The issuer of the OAuth server. */
  issuer: string
  agentsFor: AgentsFor
  inner: InnerCalls
}

/** Returns the recipient of tokens for `/mcp`, or for the MCP endpoint of an agent. */
export function mcpRecipient(
  { gatewayUrl, requiresAudience }: { gatewayUrl: string; requiresAudience: boolean },
  slug?: string,
): TokenRecipient {
  if (slug === undefined) return { names: [`${gatewayUrl}/mcp`], requiresAudience }
  const agent = `${gatewayUrl}/agents/${slug}`
  return { names: [`${agent}/mcp`, agent], requiresAudience }
}

/** Returns the resource to which a path of the gateway belongs. */
export function protectedResourceAt(gatewayUrl: string, path: string): ProtectedResource {
  const [name = ''] = resourcePath.exec(path) ?? []
  return { resource: `${gatewayUrl}${name}`, scope }
}

/**
 * Adds the metadata of the gateway, its interfaces and its agents as protected resources (RFC 9728), and its address to each 401
 * and 403 that has a challenge. The metadata of an agent exists for every slug, because clients without a token look for it: an
 * agent that they may not see and an unknown one have the same.
 */
export function addProtectedResourceRoutes(app: FastifyInstance, options: ProtectedResourceRoutes): void {
  const { gatewayUrl, agentsFor, inner } = options
  app.addHook('onSend', (request, reply, payload, done) => {
    const isRefused = reply.statusCode === 401 || reply.statusCode === 403
    // The challenge of an inner request becomes that of the outer request, which names its own resource.
    const challenge =
      isRefused && inner.current === undefined ? reply.getHeader('www-authenticate') : undefined
    if (typeof challenge === 'string') {
      const resource = protectedResourceAt(gatewayUrl, partsOf(request.url).path)
      void reply.header('www-authenticate', challengeWithMetadata(challenge, resource))
    }
    done(null, payload)
  })
  for (const [path, name] of Object.entries(interfaces)) {
    const metadata = metadataOf(`${gatewayUrl}${path}`, name, options)
    app.get(resourceMetadataPath(metadata.resource), { config: { api: described } }, (request, reply) =>
      sendCacheable(request, reply, JSON.stringify(metadata)),
    )
  }
  for (const suffix of ['', '/mcp']) {
    const path = `${resourceMetadataPath(`${gatewayUrl}/agents`)}/:slug${suffix}`
    const api = { ...described, errors: ['NotFound'] } satisfies OperationDescription
    app.get<{ Params: { slug: string } }>(path, { config: { api } }, async (request, reply) => {
      const { slug } = request.params
      if (!/^[\w.-]+$/.test(slug)) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
      const name = (await agentsFor(request)).bySlug(slug)?.name ?? 'agent'
      const metadata = metadataOf(`${gatewayUrl}/agents/${slug}${suffix}`, `${name} (Parley)`, options)
      return sendCacheable(request, reply, JSON.stringify(metadata), { perCaller: true })
    })
  }
}

function metadataOf(resource: string, name: string, { issuer }: Pick<ProtectedResourceRoutes, 'issuer'>) {
  return {
    resource,
    resource_name: name,
    authorization_servers: [issuer],
    scopes_supported: scope.split(' '),
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: [...proofAlgorithms],
  } satisfies z.output<typeof protectedResourceMetadata>
}
