import { isDeepStrictEqual } from 'node:util'
import { requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import { type Caller, mayUse, type Scope } from '@parley/kit/auth/caller'
import { audienceHeader } from '@parley/kit/did/signature'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { changedEntryAnswer, entryAnswer, leftAnswer } from '@parley/wire/codecs/answers/registry'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { leavingIn, leavingQueryIn, lookAlikesOut, registrationIn } from '@parley/wire/codecs/parley/registry'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { AgentCredentials } from '../registration/agent-credentials.ts'
import { mcpDialect } from '../registration/fetch-mcp-server.ts'
import type { AgentRegistration } from '../registration/registration.ts'
import { issuesIn } from '../registry/card.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { lookAlikes, requireDistinct } from '../registry/look-alikes.ts'
import { revisionOf } from '../registry/revision.ts'
import { agentNotFoundError, entryDetailWithProof, type RegistryRoutes } from './registry-routes.ts'

type Request = FastifyRequest<{ Params: { id: string } }>

const admission = z.object({
  revision: z.string().max(64).optional(),
  own: z.boolean().default(false),
  credential: z.string().min(1).max(20_000).optional(),
  scheme: z.string().max(256).optional(),
})
const quarantine = z.object({ reason: z.string().max(500).default('quarantined by the operator') })

export interface RegistrationRoutes extends RegistryRoutes {
  registration: AgentRegistration
  credentials: AgentCredentials
}

const register: OperationDescription = {
  summary: 'Register an agent, or another process of it',
  tag: 'registry',
  access: 'agent:write',
  body: { json: registrationIn },
  responses: {
    200: { description: 'The agent was registered before', json: entryAnswer },
    201: { description: 'The agent is registered', json: entryAnswer },
  },
  errors: ['Conflict', 'InvalidAgentResponse', 'NotFound'],
}

const leave: OperationDescription = {
  summary: 'Remove an agent, or a process of it',
  tag: 'registry',
  access: 'agent:write',
  query: leavingQueryIn,
  responses: { 200: { description: 'Removed', json: leftAnswer } },
  errors: ['Conflict'],
}

const operations = {
  admit: { summary: 'Admit an agent, so that it receives work', body: { json: admission, required: false } },
  quarantine: { summary: 'Keep work away from an agent', body: { json: quarantine, required: false } },
  release: { summary: 'End the quarantine of an agent' },
} satisfies Record<string, Partial<OperationDescription>>

/**
 * Adds `POST /registry/agents`, `DELETE /registry/agents/{id}` and the operator's `/admit`, `/quarantine` and
 * `/release`. Changes and refusals are written to the audit log.
 */
export function addRegistrationRoutes(app: FastifyInstance, routes: RegistrationRoutes): void {
  const { registry, registration, access, credentials } = routes
  const audited = (action: string, api: OperationDescription) => ({ config: { audit: action, api } })
  app.post('/registry/agents', audited('registry.register', register), async (request, reply) => {
    requireJson(request)
    const caller = await authenticate(routes, request)
    const body = bodyOf(request)
    const { url, replicaId, isMcp, name } = parseParams(registrationIn, parseJson(body))
    request.auditTarget = url
    requireScope(caller, 'agent:write')
    const { 'x-did-timestamp': timestamp, [audienceHeader]: audience } = request.headers
    const signed = { timestamp, audience, body }
    const agents = await access.agentsFor(caller)
    const { entry, isNew } = await registration.register({
      url,
      isMcp,
      name,
      caller,
      signed,
      isVisible: (slug) => agents.bySlug(slug) !== undefined,
      ...(replicaId !== undefined && { replicaId }),
    })
    request.auditTarget = `${entry.slug} at ${entry.url}`
    return reply.code(isNew ? 201 : 200).send(await entryDetailWithProof(routes, entry))
  })
  app.delete<{ Params: { id: string } }>(
    '/registry/agents/:id',
    audited('registry.leave', leave),
    async (request) => {
      const caller = await authenticate(routes, request)
      const operator = mayUse(caller, 'agent:admin')
      if (!operator) requireScope(caller, 'agent:write')
      const entry = operator
        ? registry.findIncludingLeft(request.params.id)
        : registry.find(request.params.id)
      if (entry === undefined || !(operator || entry.owner === caller.id)) throw agentNotFoundError()
      // Operators may remove supervised agents that have lost their folder or machine.
      if (entry.origin === 'supervised' && !(operator && entry.status === 'unreachable')) throw isSupervised()
      // Removal by an operator deletes the entry. If the agent itself unregisters, operators' decisions are kept.
      const { replicaId } = parseParams(leavingIn, request.query)
      if (replicaId !== undefined) await registry.leaveReplica(entry.id, replicaId)
      else await (operator ? registry.remove(entry.id) : registry.leave(entry.id))
      if (registry.findIncludingLeft(entry.id) === undefined) await credentials.remove(entry.id)
      return { success: true, id: entry.id, slug: entry.slug }
    },
  )
  addOperatorRoutes(app, routes)
}

function addOperatorRoutes(app: FastifyInstance, routes: RegistrationRoutes): void {
  const { registry, credentials, registration } = routes
  const operate = (
    action: keyof typeof operations,
    change: (entry: AgentEntry, by: string, request: Request) => Promise<AgentEntry>,
  ) => {
    const api: OperationDescription = {
      ...operations[action],
      tag: 'registry',
      access: 'agent:admin',
      responses: { 200: { description: 'The changed agent', json: changedEntryAnswer } },
      errors: ['Conflict'],
    }
    const options = { config: { audit: `registry.${action}`, api } }
    app.post<{ Params: { id: string } }>(`/registry/agents/:id/${action}`, options, async (request) => {
      const caller = await authenticate(routes, request, 'agent:admin')
      const entry = registry.findIncludingLeft(request.params.id)
      if (entry === undefined) throw agentNotFoundError()
      const changed = await change(entry, caller.id, request)
      const alike = action === 'admit' ? lookAlikes(changed, registry.all()) : []
      return { ...(await entryDetailWithProof(routes, changed)), ...lookAlikesOut(alike) }
    })
  }
  operate('admit', async (entry, by, request) => {
    const { id } = entry
    const { revision: reviewed, own, credential, scheme } = parseParams(admission, optionalBody(request))
    if (credential !== undefined) credentials.check(entry, credential, scheme)
    const isExpected = (now: AgentEntry) => {
      requireDistinct(now, registry.all())
      // The credential was checked for the server that the card named.
      if (credential !== undefined && !isDeepStrictEqual(now.relay, entry.relay)) return false
      return reviewed === undefined || revisionOf(now) === reviewed
    }
    const admitted = await registry.admit(id, by, { isExpected, own })
    if (credential === undefined) return admitted
    await credentials.set(admitted, credential, scheme)
    // An MCP server shows its tools to clients with a credential.
    if (admitted.relay?.dialect !== mcpDialect) return admitted
    const read = await registration.renew(id).catch(toolsUnread)
    return read ?? admitted
  })
  operate('quarantine', ({ id }, by, request) => {
    const { reason } = parseParams(quarantine, optionalBody(request))
    return registry.quarantine(id, by, reason)
  })
  operate('release', ({ id }) => registry.release(id))
}

async function authenticate(
  { authenticator }: RegistryRoutes,
  request: FastifyRequest,
  scope?: Scope,
): Promise<Caller> {
  const caller = await authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  requireNoDelegate(caller)
  if (scope !== undefined) requireScope(caller, scope)
  return caller
}

/** Returns the JSON body, which is optional. */
function optionalBody(request: FastifyRequest): unknown {
  const body = bodyOf(request)
  return body.byteLength === 0 ? {} : parseJson(body)
}

function toolsUnread(error: unknown): never {
  if (!(error instanceof ParleyError)) throw error
  throw new ParleyError('Conflict', {
    message: `The server is admitted, but its tools could not be read: ${issuesIn(error) || error.message}. Admit it again with a credential that it accepts, or when it is available`,
    data: { reason: 'tools_unread' },
    cause: error,
  })
}

const isSupervised = () =>
  new ParleyError('Conflict', {
    message:
      'The gateway runs this agent itself: delete its folder, restart the gateway, then remove the agent',
    data: { reason: 'supervised' },
  })
