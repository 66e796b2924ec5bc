import { type AuthenticatedCaller, requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import { mayUse, type Scope } from '@parley/kit/auth/caller'
import { canonicalResource } from '@parley/kit/auth/protected-resource'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  keyIn,
  keyListAnswer,
  keyListIn,
  keyOut,
  newKeyAnswer,
  removedAnswer,
} from '@parley/wire/codecs/parley/clients'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { keyLifetime, type OAuthKey } from '@parley/wire/model/oauth-client'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { defaultScope, operatorScope } from '../oauth/client-rules.ts'
import { type ListedClient, usableScope } from '../oauth/clients/client-directory.ts'
import { allowsAudience } from '../oauth/clients/client-settings.ts'
import { isKey, type LongLivedKey, type LongLivedKeys } from '../oauth/clients/long-lived-keys.ts'
import { type ClientRoutes, found, requireKnownScope, timeOf } from './client-routes.ts'

export interface ClientKeyRoutes extends Pick<ClientRoutes, 'clients' | 'authenticator'> {
  keys: LongLivedKeys
}

const list: OperationDescription = {
  summary: 'List long-lived keys',
  tag: 'clients',
  access: 'agent:read',
  query: keyListIn,
  responses: {
    200: { description: 'The keys of the client; for operators, of all clients', json: keyListAnswer },
  },
}

const createKey: OperationDescription = {
  summary: 'Create a long-lived key',
  tag: 'clients',
  access: 'agent:read',
  body: { json: keyIn },
  responses: { 201: { description: 'The key, which is shown once', json: newKeyAnswer } },
  errors: ['NotFound', 'Conflict'],
}

const revoke: OperationDescription = {
  summary: 'Revoke a long-lived key',
  tag: 'clients',
  access: 'agent:write',
  responses: { 200: { description: 'Revoked', json: removedAnswer } },
}

type KeyRequest = z.output<typeof keyIn>

/**
 * Adds `GET` and `POST /client-keys` and `DELETE /client-keys/{id}` for long-lived keys (guides/clients.md#keys). A client
 * manages its own keys, and an operator those of every client. Changes are written to the audit log.
 */
export function addClientKeyRoutes(app: FastifyInstance, routes: ClientKeyRoutes): void {
  const { keys } = routes
  app.get('/client-keys', { config: { api: list } }, async (request, reply) => {
    const caller = await authenticate(routes, request, 'agent:read')
    const { client } = parseParams(keyListIn, request.query)
    if (client !== caller.subject && !mayUse(caller, operatorScope)) requireOwn(caller, client)
    const all = await keys.list(client ?? (mayUse(caller, operatorScope) ? undefined : caller.subject))
    void reply.header('cache-control', 'no-store')
    return { keys: all.map(viewOf).map(keyOut) }
  })
  app.post('/client-keys', { config: { audit: 'clients.create-key', api: createKey } }, (request, reply) =>
    create(routes, request, reply),
  )
  app.delete<{ Params: { id: string } }>(
    '/client-keys/:id',
    { config: { audit: 'clients.revoke-key', api: revoke } },
    async (request) => {
      const caller = await authenticate(routes, request, 'agent:write')
      const key = await keys.find(request.params.id)
      // Keys of other clients are reported as not found.
      if (key === undefined || (key.clientId !== caller.subject && !mayUse(caller, operatorScope)))
        throw keyNotFound()
      await keys.revoke(key.id)
      return { success: true, id: key.id }
    },
  )
}

async function create(
  { clients, keys, ...routes }: ClientKeyRoutes,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<object> {
  const caller = await authenticate(routes, request, 'agent:read')
  requireJson(request)
  const wanted = parseParams(keyIn, parseJson(bodyOf(request)))
  const clientId = wanted.client ?? caller.subject
  request.auditTarget = clientId
  requireOwn(caller, clientId)
  // A key that was stolen must not outlive its revocation by means of other keys.
  if (isKey(caller.credentials.token))
    throw refused('key', 'A long-lived key creates no keys: use an access token')
  requireNoApproval(caller)
  requireAudience(caller)
  const client = found(await clients.find(clientId))
  requireKeyClient(client)
  const scope = scopeFor(wanted, client, caller)
  const resource = resourceFor(wanted, client, caller)
  const created = await keys.create({
    clientId,
    name: wanted.name,
    scope,
    ...(resource !== undefined && { aud: resource }),
    exp: Math.floor(Date.now() / 1000) + lifetimeOf(wanted, scope),
    ...(clientId !== caller.subject && { createdBy: caller.subject }),
  })
  if (created === undefined) throw tooManyKeys()
  request.auditTarget = `${created.record.id} of ${clientId} with ${scope}`
  void reply.code(201).header('cache-control', 'no-store')
  return { key: created.key, details: keyOut(viewOf(created.record)) }
}

async function authenticate(
  { authenticator }: Pick<ClientKeyRoutes, 'authenticator'>,
  request: FastifyRequest,
  scope: Scope,
): Promise<AuthenticatedCaller> {
  const caller = await authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  requireNoDelegate(caller)
  if (!mayUse(caller, operatorScope)) requireScope(caller, scope)
  return caller
}

/** Only operators manage the keys of other clients. @throws ParleyError InsufficientPermissions */
function requireOwn(caller: AuthenticatedCaller, clientId: string | undefined): void {
  if (clientId !== undefined && clientId !== caller.subject) requireScope(caller, operatorScope)
}

/** A person approves an application for a limited time. A key would not end with the approval. */
function requireNoApproval({ credentials }: AuthenticatedCaller): void {
  const { client_id: client, sub = client } = credentials.introspection
  if (sub !== client)
    throw refused(
      'approval',
      'A token that a person has approved creates no keys: ask an operator for a key of this client (--client)',
    )
}

/**
 * An agent that receives a token for every server from a direct caller must not be able to make a key of it. A token
 * with an audience is known to this gateway and its client only.
 */
function requireAudience(caller: AuthenticatedCaller): void {
  if (mayUse(caller, operatorScope) || (caller.audience ?? []).length > 0) return
  throw refused(
    'unrestricted_token',
    'This token is valid at every server, so it creates no keys: get a token for the gateway with the OAuth parameter resource=<address of the gateway>',
  )
}

function requireKeyClient({ settings, isSenderConstrained }: ListedClient): void {
  if (settings.disabled === true) throw conflict('disabled', 'The client is revoked: enable it first')
  if (isSenderConstrained)
    throw conflict(
      'sender_constrained',
      'The client has registered for DPoP-bound tokens only, and a key is not bound',
    )
}

/** A key has scopes of its client. A client cannot give a key more than its own token has. */
function scopeFor({ scope, admin }: KeyRequest, client: ListedClient, caller: AuthenticatedCaller): string {
  requireKnownScope(scope)
  const isOwn = client.id === caller.subject
  const usable = usableScope(client).split(' ')
  const allowed = isOwn ? usable.filter((name) => caller.scopes.has(name)) : usable
  const names = scope?.split(' ') ?? allowed.filter((name) => defaultScope.split(' ').includes(name))
  const missing = names.find((name) => !allowed.includes(name))
  if (missing !== undefined || names.length === 0)
    throw refused(
      'scope',
      `The key would have ${missing ?? 'no scope'}, which ${isOwn ? 'your token' : 'the client'} has not`,
    )
  if (names.includes(operatorScope) && !admin)
    throw refused(
      'operator_key',
      `A key with ${operatorScope} acts as the operator: confirm it with \`admin\` (--admin)`,
    )
  return [...new Set(names)].join(' ')
}

/** A token for certain servers gives no key for others. @throws ParleyError InsufficientPermissions */
function resourceFor(
  { resource: requested }: KeyRequest,
  { settings, id }: ListedClient,
  { audience = [], subject }: AuthenticatedCaller,
): string | undefined {
  const own = id === subject ? audience : []
  const resource = requested ?? own[0]
  if (resource !== undefined && !/^(https?|did):$/.test(URL.parse(resource)?.protocol ?? '')) {
    const issues = [{ path: 'resource', message: 'must be an http, https or did address' }]
    throw new ParleyError('InvalidParams', { data: { issues } })
  }
  const isCovered = (name: string) => own.some((server) => server === name || isInterfaceOf(server, name))
  if (resource !== undefined && own.length > 0 && !isCovered(resource))
    throw refused('resource', `Your token is for ${own.join(' ')} only: use a token for ${resource}`)
  if (!allowsAudience(settings, resource))
    throw refused(
      'resource',
      `The operator allows this client these resources only: ${settings.resources?.join(' ')}`,
    )
  return resource
}

/** Whether the resource is an interface of the server that has separate tokens. A token for the server is valid there too. */
function isInterfaceOf(server: string, resource: string): boolean {
  const [gateway, name] = [canonicalResource(server), canonicalResource(resource)]
  return (
    name.startsWith(`${gateway}/`) && /^\/(mcp|v1|agents\/[\w.-]+\/mcp)$/.test(name.slice(gateway.length))
  )
}

function lifetimeOf({ lifetimeSeconds: requested }: KeyRequest, scope: string): number {
  const max = scope.split(' ').includes(operatorScope) ? keyLifetime.maxOfOperator : keyLifetime.max
  const lifetime = requested ?? keyLifetime.default
  if (lifetime <= max) return lifetime
  const issues = [{ path: 'lifetimeSeconds', message: `must be at most ${max} (${max / 86_400} days)` }]
  throw new ParleyError('InvalidParams', { data: { issues } })
}

function viewOf({ clientId, aud, iat, exp, ...key }: LongLivedKey): OAuthKey {
  const { id, name, scope, createdBy } = key
  return {
    id,
    client: clientId,
    name,
    scope,
    resource: aud,
    createdAt: timeOf(iat),
    expiresAt: timeOf(exp),
    createdBy,
  }
}

const refused = (reason: string, message: string) =>
  new ParleyError('InsufficientPermissions', { message, data: { reason } })

const conflict = (reason: string, message: string) =>
  new ParleyError('Conflict', { message, data: { reason } })

const tooManyKeys = () => conflict('keys', 'The client has 20 keys: revoke one that is no longer used')

const keyNotFound = () =>
  new ParleyError('NotFound', {
    message: 'Key not found: npx parley clients keys lists the ids',
    data: { reason: 'key' },
  })
