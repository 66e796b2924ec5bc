import { statementKeysPath } from '@parley/kit/auth/statement'
import { didDocumentType } from '@parley/kit/did/document'
import type { Identity } from '@parley/kit/did/identity'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'

/** Adds `GET /.well-known/did.json`, which returns the gateway's identity or 404 (spec/did.md#gateway-identity). */
export function addIdentityRoute(app: FastifyInstance, identity: Identity | undefined): void {
  // Sent as bytes because Fastify adds a charset to strings.
  const document = identity && Buffer.from(JSON.stringify(identity.document))
  app.get('/.well-known/did.json', (_request, reply) => {
    if (document === undefined) throw new ParleyError('NotFound', { data: { reason: 'did' } })
    return reply.type(didDocumentType).header('cache-control', 'public, max-age=300').send(document)
  })
}

/** Adds `GET /.well-known/jwks.json`, which returns the keys of the gateway's statements, or 404 if it signs none. */
export function addStatementKeysRoute(
  app: FastifyInstance,
  statementKeys: (() => Promise<object>) | undefined,
): void {
  app.get(statementKeysPath, async (_request, reply) => {
    if (statementKeys === undefined) throw new ParleyError('NotFound', { data: { reason: 'statement_keys' } })
    const body = JSON.stringify(await statementKeys())
    return reply.type('application/jwk-set+json').header('cache-control', 'no-store').send(Buffer.from(body))
  })
}
