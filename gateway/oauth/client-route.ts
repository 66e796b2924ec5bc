import type { OperationDescription } from '@parley/kit/http/route-description'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { oauthErrors } from './descriptions/errors.ts'
import { type IntrospectionClientOptions, isIntrospectionClient } from './introspection-client.ts'

/** The published metadata of a client. */
export interface ClientMetadata {
  clientId: string
  clientName?: string
  scope: string
  /** A raw Ed25519 key in base58. */
  publicKey?: string
}

export interface ClientRouteOptions extends IntrospectionClientOptions {
  prefix: string
  metadataOf: (clientId: string) => Promise<ClientMetadata | undefined>
}

const api: OperationDescription = {
  summary: 'Read the key with which a client signs requests',
  description: 'For the clients of admitted agents.',
  tag: 'oauth',
  access: 'basic',
  wildcard: 'client_id',
  responses: {
    200: {
      description: 'The key',
      json: z.object({
        client_id: z.string(),
        metadata: z.object({ public_key: z.string().optional() }),
      }),
    },
  },
  errors: ['AuthenticationRequired'],
  ...oauthErrors,
}

/**
 * Adds `GET /oauth2/clients/{client_id}`, which returns a client's key to servers that verify signed requests. The
 * response has the format of Ory Hydra's admin API. Only clients that may introspect can use this route.
 */
export function mountClientMetadata(scope: FastifyInstance, options: ClientRouteOptions): void {
  const { prefix, metadataOf } = options
  // The route uses a wildcard because a percent-encoded DID can exceed the length limit for parameters.
  scope.get<{ Params: { '*': string } }>(
    `${prefix}/clients/*`,
    { config: { api } },
    async (request, reply) => {
      void reply.header('cache-control', 'no-store').type('application/json; charset=utf-8')
      if (!(await isIntrospectionClient(options, request.headers.authorization))) {
        void reply.code(401).header('www-authenticate', 'Basic realm="clients"')
        return JSON.stringify({ error: 'invalid_client' })
      }
      const found = await metadataOf(request.params['*'])
      if (found === undefined) {
        void reply.code(404)
        return JSON.stringify({ error: 'not_found' })
      }
      const { clientId, publicKey } = found
      return JSON.stringify({ client_id: clientId, metadata: { public_key: publicKey } })
    },
  )
}
