import { operatorKeysPath } from '@parley/kit/auth/operator-statement'
import { statementKeysPath } from '@parley/kit/auth/statement'
import { didDocumentAnswer, didDocumentType } from '@parley/kit/did/document'
import type { Identity } from '@parley/kit/did/identity'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyReply } from 'fastify'
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
const operatorKeysApi: OperationDescription = {
  ...keysApi,
  summary: 'The keys of the statements with which the gateway reads agents for operators',
  errors: [],
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

interface GatewayKeySets {
  signingKeys: { keySet(): Promise<object> }
  /** Undefined if the gateway signs no statements about callers. */
  statementKeys: (() => Promise<object>) | undefined
}

/**
 * Adds `GET /.well-known/jwks.json`, which returns the keys of the gateway's statements about callers, or 404 if it signs none,
 * and `GET /.well-known/operator-jwks.json`, which returns those of operator statements.
 */
export function addStatementKeysRoute(
  app: FastifyInstance,
  { statementKeys, signingKeys }: GatewayKeySets,
): void {
  app.get(statementKeysPath, { config: { api: keysApi } }, async (_request, reply) => {
    if (statementKeys === undefined) throw new ParleyError('NotFound', { data: { reason: 'statement_keys' } })
    return sendKeys(reply, await statementKeys())
  })
  app.get(operatorKeysPath, { config: { api: operatorKeysApi } }, async (_request, reply) =>
    sendKeys(reply, await signingKeys.keySet()),
  )
}

function sendKeys(reply: FastifyReply, keys: object): FastifyReply {
  const body = Buffer.from(JSON.stringify(keys))
  return reply.type('application/jwk-set+json').header('cache-control', 'no-store').send(body)
}
