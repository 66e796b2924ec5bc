import { type Authenticator, requireNoDelegate } from '@parley/kit/auth/authenticate'
import type { Introspection } from '@parley/kit/auth/introspection'
import { statementExchangePath, statementTokenType } from '@parley/kit/auth/statement'
import { bodyOf } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { oauthErrors } from '../oauth/descriptions/errors.ts'
import type { DelegatedTokens } from '../oauth/exchange/delegated-tokens.ts'
import { ExchangeRefused } from '../oauth/exchange/embedded-exchange.ts'
import { accessTokenType, errorCodes, exchangeGrantType } from '../oauth/exchange/exchange-grant.ts'

export interface StatementExchangeRoute {
  delegated: Pick<DelegatedTokens, 'exchange'>
  authenticator: Authenticator
  log: Log
}

/** Larger than any statement that a gateway signs. */
const bodyMaxBytes = 56 * 1024

const api: OperationDescription = {
  summary: 'Exchange a statement for an access token',
  description: 'Exists only with an external OAuth server.',
  tag: 'oauth',
  access: 'token',
  body: {
    content: {
      'application/x-www-form-urlencoded': z.object({
        grant_type: z.literal(exchangeGrantType),
        subject_token: z.string(),
        subject_token_type: z.literal(statementTokenType),
        requested_token_type: z.literal(accessTokenType).optional(),
        resource: z.string(),
        scope: z.string().optional(),
      }),
    },
  },
  responses: {
    200: {
      description: 'The token',
      json: z.object({
        access_token: z.string(),
        issued_token_type: z.literal(accessTokenType),
        token_type: z.literal('Bearer'),
        expires_in: z.int(),
        scope: z.string(),
      }),
    },
  },
  ...oauthErrors,
}

/**
 * Adds `POST /oauth2/token`, at which agents exchange statements (spec/authentication.md#exchange-of-statements). It exists
 * only with an external OAuth server. The agent authenticates with its own access token of that server.
 */
export function addStatementExchangeRoute(
  app: FastifyInstance,
  { delegated, authenticator, log }: StatementExchangeRoute,
): void {
  const audit = new Audit(log)
  app.post(statementExchangePath, { bodyLimit: bodyMaxBytes, config: { api } }, async (request, reply) => {
    void reply.header('cache-control', 'no-store')
    let actor: Introspection
    try {
      actor = await actorOf(request, authenticator)
    } catch (error) {
      return refuseActor(error, reply)
    }
    const who = actor.client_id ?? ''
    const parsed = readForm(request)
    if ('error' in parsed) return reply.code(400).send(parsed)
    try {
      const { text, clientId, scope, exp } = await delegated.exchange({ ...parsed, actor })
      const reason = `for ${clientId}: ${scope}`
      audit.record({ ...originOf(request), who, target: parsed.resource, allowed: true, reason })
      return {
        access_token: text,
        issued_token_type: accessTokenType,
        token_type: 'Bearer',
        expires_in: Math.max(0, Math.floor(exp - Date.now() / 1000)),
        scope,
      }
    } catch (error) {
      if (!(error instanceof ExchangeRefused)) throw error
      const { reason, message } = error
      audit.record({ ...originOf(request), who, target: parsed.resource, allowed: false, reason })
      return reply.code(400).send({ error: errorCodes[reason], error_description: message })
    }
  })
}

/** @throws ParleyError */
async function actorOf(request: FastifyRequest, authenticator: Authenticator): Promise<Introspection> {
  const caller = await authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  requireNoDelegate(caller)
  const { introspection } = caller.credentials
  if (introspection.act !== undefined || introspection.client_id === undefined)
    throw new ParleyError('InvalidToken', {
      message: 'Use an access token that the agent’s client has requested',
    })
  return introspection
}

/** Responds as RFC 6749, section 5.2, requires. Temporary failures keep the error of the gateway. */
function refuseActor(error: unknown, reply: FastifyReply): FastifyReply {
  if (!(error instanceof ParleyError) || ![401, 403].includes(error.status)) throw error
  return reply
    .code(401)
    .header('www-authenticate', 'Bearer error="invalid_token"')
    .headers(error.headers)
    .send({
      error: 'invalid_client',
      error_description: `${error.message}: send an access token of the agent’s own client`,
    })
}

interface Form {
  statement: string
  resource: string
  scope?: string
}

function readForm(request: FastifyRequest): Form | { error: string; error_description: string } {
  const refuse = (error: string, error_description: string) => ({ error, error_description })
  const invalid = (description: string) => refuse('invalid_request', description)
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers['content-type'] ?? ''))
    return invalid('the content type must be application/x-www-form-urlencoded')
  const form = new URLSearchParams(bodyOf(request).toString('utf8'))
  const names = [...form.keys()]
  if (new Set(names).size < names.length) return invalid('each parameter may be sent once')
  const [grantType, statement, resource, scope] = ['grant_type', 'subject_token', 'resource', 'scope'].map(
    (name) => form.get(name) ?? '',
  )
  if (grantType !== exchangeGrantType)
    return refuse('unsupported_grant_type', `the gateway offers ${exchangeGrantType} only`)
  if (form.get('subject_token_type') !== statementTokenType)
    return invalid(`subject_token_type must be ${statementTokenType}`)
  const type = form.get('requested_token_type') ?? accessTokenType
  if (type !== accessTokenType) return invalid(`requested_token_type must be ${accessTokenType}`)
  if (!statement) return invalid('subject_token is missing')
  if (!resource) return refuse('invalid_target', 'resource is missing: send the address of the gateway')
  return { statement, resource, ...(scope ? { scope } : {}) }
}

const originOf = ({ ip, id }: FastifyRequest) => ({ address: ip, requestId: id, action: 'oauth.exchange' })
