import { statementKeysPath } from '@parley/kit/auth/statement'
import { didDocumentAnswer, didDocumentType } from '@parley/kit/did/document'
import type { Identity } from '@parley/kit/did/identity'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'

const didApi: OperationDescription = {
  summary: 'The DID document of the gateway',
  tag: 'identity',
  access: 'public',
  responses: { 200: { description: 'The DID document', content: { [didDocumentType]: didDocumentAnswer } } },
  errors: ['NotFound'],
}

const keySet = z.looseObject({ keys: z.array(z.looseObject({ kty: z.string() })) })
const keysApi: OperationDescription = {
  summary: 'The keys of the statements that the gateway signs',
  tag: 'identity',
  access: 'public',
  responses: { 200: { description: 'A JSON Web Key Set', content: { 'application/jwk-set+json': keySet } } },
  errors: ['NotFound'],
}

/** Adds `GET /.well-known/did.json`, which returns the gateway's identity or 404 (spec/did.md#gateway-identity). */
export function addIdentityRoute(app: FastifyInstance, identity: Identity | undefined): void {
  // Sent as bytes because Fastify adds a charset to strings.
  const document = identity && Buffer.from(JSON.stringify(identity.document))
  app.get('/.well-known/did.json', { config: { api: didApi } }, (_request, reply) => {
    if (document === undefined) throw new ParleyError('NotFound', { data: { reason: 'did' } })
    return reply.type(didDocumentType).header('cache-control', 'public, max-age=300').send(document)
  })
}

/** Adds `GET /.well-known/jwks.json`, which returns the keys of the gateway's statements, or 404 if it signs none. */
export function addStatementKeysRoute(
  app: FastifyInstance,
  statementKeys: (() => Promise<object>) | undefined,
): void {
  app.get(statementKeysPath, { config: { api: keysApi } }, async (_request, reply) => {
    if (statementKeys === undefined) throw new ParleyError('NotFound', { data: { reason: 'statement_keys' } })
    const body = JSON.stringify(await statementKeys())
    return reply.type('application/jwk-set+json').header('cache-control', 'no-store').send(Buffer.from(body))
  })
}
