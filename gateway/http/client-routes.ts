import {
  type AuthenticatedCaller,
  type Authenticator,
  requireNoDelegate,
  requireScope,
} from '@parley/kit/auth/authenticate'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  clientAnswer,
  clientIn,
  clientLimitIn,
  clientListAnswer,
  clientListIn,
  clientListOut,
  clientOut,
  clientTagsIn,
  removedAnswer,
} from '@parley/wire/codecs/parley/clients'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { OAuthClient } from '@parley/wire/model/oauth-client'
import { type Timestamp, timestampOf } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { unknownScopeIn } from '../oauth/client-rules.ts'
import type { ClientDirectory, ListedClient } from '../oauth/clients/client-directory.ts'
import type { Registry } from '../registry/registry.ts'

export interface ClientRoutes {
  clients: ClientDirectory
  registry: Registry
  authenticator: Authenticator
}

const ofOperator = { tag: 'clients', access: 'agent:admin' } satisfies Partial<OperationDescription>

const list: OperationDescription = {
  ...ofOperator,
  summary: 'List OAuth clients',
  query: clientListIn,
  responses: { 200: { description: 'A page of clients', json: clientListAnswer } },
}

const params = z.object({ id: z.string().describe('The client ID, which may contain slashes') })

const read: OperationDescription = {
  ...ofOperator,
  summary: 'Read an OAuth client',
  wildcard: 'id',
  params,
  responses: { 200: { description: 'The client', json: clientAnswer } },
}

const remove: OperationDescription = {
  ...ofOperator,
  summary: 'Remove an OAuth client with its tokens',
  wildcard: 'id',
  params,
  responses: { 200: { description: 'Removed', json: removedAnswer } },
  errors: ['Conflict'],
}

const changeSummaries = {
  limit: 'Replace the limits of a client',
  tag: 'Replace the tags of a client',
  revoke: 'Revoke a client and its tokens',
  enable: 'Enable a revoked client',
}

/**
 * Adds the operator's routes for clients of the embedded OAuth server (guides/clients.md): `GET /clients`,
 * `GET` and `DELETE /clients/{id}`, and `POST /clients/limit`, `/tag`, `/revoke` and `/enable`. Changes are written to the
 * audit log.
 */
export function addClientRoutes(app: FastifyInstance, routes: ClientRoutes): void {
  const { clients, authenticator } = routes
  const view = viewOf(routes)
  app.get('/clients', { config: { api: list } }, async (request) => {
    await authenticateOperator(authenticator, request)
    const { q, limit, cursor } = parseParams(clientListIn, request.query)
    const after = cursor === undefined ? '' : Buffer.from(cursor, 'base64url').toString('utf8')
    const page = await clients.list({ after, limit, ...(q !== undefined && { words: q }) })
    const last = page.hasMore ? page.clients.at(-1) : undefined
    return clientListOut(page.clients.map(view), last && Buffer.from(last.id).toString('base64url'))
  })
  // The routes use a wildcard because a percent-encoded DID can exceed the length limit for parameters.
  const one = { config: { api: read } }
  app.get<{ Params: { '*': string } }>('/clients/*', one, async (request) => {
    await authenticateOperator(authenticator, request)
    return clientOut(view(found(await clients.find(request.params['*']))))
  })
  app.delete<{ Params: { '*': string } }>(
    '/clients/*',
    { config: { audit: 'clients.remove', api: remove } },
    async (request) => {
      const operator = await authenticateOperator(authenticator, request)
      const id = request.params['*']
      requireOther(operator, id)
      if (found(await clients.find(id)).managed) throw isManaged()
      await clients.remove(id)
      return { success: true, id }
    },
  )
  addChanges(app, routes, view)
}

function addChanges(
  app: FastifyInstance,
  { clients, authenticator }: ClientRoutes,
  view: (client: ListedClient) => OAuthClient,
): void {
  const change = <T extends z.ZodType<{ id: string }>>(
    action: keyof typeof changeSummaries,
    schema: T,
    run: (body: z.output<T>, operator: AuthenticatedCaller) => Promise<ListedClient | undefined>,
  ) => {
    const api: OperationDescription = {
      ...ofOperator,
      summary: changeSummaries[action],
      body: { json: schema },
      responses: { 200: { description: 'The changed client', json: clientAnswer } },
      errors: ['NotFound', 'Conflict'],
    }
    app.post(`/clients/${action}`, { config: { audit: `clients.${action}`, api } }, async (request) => {
      const operator = await authenticateOperator(authenticator, request)
      requireJson(request)
      const body = parseParams(schema, parseJson(bodyOf(request)))
      request.auditTarget = body.id
      return clientOut(view(found(await run(body, operator))))
    })
  }
  change('limit', clientLimitIn, async ({ id, scope, perMinute, expiresAt, resources }, operator) => {
    requireOther(operator, id)
    requireKnownScope(scope)
    return clients.limit(id, {
      ...(scope !== undefined && { scope }),
      ...(perMinute !== undefined && { requestsPerMinute: perMinute }),
      ...(expiresAt !== undefined && { expiresAt: Math.floor(Date.parse(expiresAt) / 1000) }),
      ...(resources !== undefined && { resources }),
    })
  })
  change('tag', clientTagsIn, ({ id, tags }) => clients.tag(id, tags))
  change('revoke', clientIn, async ({ id }, operator) => {
    requireOther(operator, id)
    return clients.revoke(id)
  })
  change('enable', clientIn, ({ id }) => clients.enable(id))
}

async function authenticateOperator(
  authenticator: Authenticator,
  request: FastifyRequest,
): Promise<AuthenticatedCaller> {
  const caller = await authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  requireNoDelegate(caller)
  requireScope(caller, 'agent:admin')
  return caller
}

const kinds = { open: 'self-registered', document: 'document', registered: 'registered' } as const

/** Returns a function that reads the owners of agents once per call. */
function viewOf({ registry }: ClientRoutes): (client: ListedClient) => OAuthClient {
  return (client) => {
    const { id, name, scope, managed, settings, provenance } = client
    const ownsAgent = registry.all().some(({ owner }) => owner === id)
    return {
      id,
      name,
      scope,
      kind: managed ? 'managed' : ownsAgent ? 'agent' : kinds[provenance ?? 'registered'],
      enabled: settings.disabled !== true,
      tags: settings.tags ?? [],
      limits: {
        scope: settings.scope,
        requestsPerMinute: settings.requestsPerMinute,
        expiresAt: timeOf(settings.expiresAt),
        resources: settings.resources,
      },
      createdAt: timeOf(client.createdAt),
      lastTokenAt: timeOf(client.lastTokenAt),
      lastUsedAt: timeOf(client.lastUsedAt),
    }
  }
}

/** @param seconds since 1970 */
export function timeOf(seconds: number): Timestamp
export function timeOf(seconds: number | undefined): Timestamp | undefined
export function timeOf(seconds: number | undefined): Timestamp | undefined {
  return seconds === undefined ? undefined : timestampOf(seconds * 1_000_000)
}

/** @throws ParleyError InvalidParams */
export function requireKnownScope(scope: string | undefined): void {
  const unknown = scope === undefined ? undefined : unknownScopeIn(scope)
  if (unknown === undefined) return
  const issues = [{ path: 'scope', message: `there is no scope ${unknown}` }]
  throw new ParleyError('InvalidParams', { data: { issues } })
}

export function found<T>(client: T | undefined): T {
  if (client !== undefined) return client
  throw new ParleyError('NotFound', {
    message: 'Client not found: npx parley clients lists the ids',
    data: { reason: 'client' },
  })
}

/** An operator must not lock itself out. */
function requireOther({ subject }: AuthenticatedCaller, id: string): void {
  if (subject !== id) return
  throw new ParleyError('Conflict', {
    message: 'This is the client of your own token: use a token of another operator client',
    data: { reason: 'own_client' },
  })
}

const isManaged = () =>
  new ParleyError('Conflict', {
    message: 'The gateway creates this client again at its next start: revoke it instead',
    data: { reason: 'managed' },
  })
