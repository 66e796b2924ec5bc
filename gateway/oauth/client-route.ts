import type { FastifyInstance } from 'fastify'
import { type CheckerOptions, isChecker } from './checker.ts'

/** What the gateway may know of a client. */
export interface ClientMetadata {
  clientId: string
  clientName?: string
  scope: string
  /** Base58 of a raw Ed25519 key. */
  publicKey?: string
}

export interface ClientRouteOptions extends CheckerOptions {
  prefix: string
  metadataOf: (clientId: string) => Promise<ClientMetadata | undefined>
}

/**
 * `GET /oauth2/clients/{client_id}`: the key of a client, for the servers that check signed requests, as Ory Hydra's admin
 * API gives it. For whoever may introspect, and nothing more than they need.
 */
export function mountClientMetadata(scope: FastifyInstance, options: ClientRouteOptions): void {
  const { prefix, metadataOf } = options
  // A wildcard: a DID in percent-encoding is longer than a parameter may be.
  scope.get<{ Params: { '*': string } }>(`${prefix}/clients/*`, async (request, reply) => {
    void reply.header('cache-control', 'no-store').type('application/json; charset=utf-8')
    if (!(await isChecker(options, request.headers.authorization))) {
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
  })
}
