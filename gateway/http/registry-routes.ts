import { type Authenticator, requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import type { Caller } from '@parley/kit/auth/caller'
import { bodyOf } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { entryAnswer, entryListAnswer, leaseAnswer } from '@parley/wire/codecs/answers/registry'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { entryListOut, heartbeatIn, renewalOut } from '@parley/wire/codecs/parley/registry'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { TaskOutcome } from '@parley/wire/model/registry'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isUnvetted } from '../registry/admission.ts'
import type { CallerAccess } from '../registry/caller-access.ts'
import { type AgentEntry, agentStatuses, type Load } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { searchAgents } from '../registry/search.ts'
import { entryDetail, entrySummary, summaryOf } from './entry-out.ts'
import type { ProofOf } from './entry-proof.ts'

export interface RegistryRoutes {
  registry: Registry
  authenticator: Authenticator
  gatewayUrl: string
  proofOf: ProofOf
  access: CallerAccess
  /** Called for each heartbeat with the previous and the new load. */
  onHeartbeat?: (id: string, before: Load, now: Load, outcomes: readonly TaskOutcome[]) => void
}

const searchText = z.string().max(256)
const listQuery = z.object({
  q: searchText.optional(),
  skill: searchText.optional(),
  tag: searchText.optional(),
  status: z.enum([...agentStatuses, 'left']).optional(),
  limit: z.coerce.number().int().min(1).max(1000).default(100),
  cursor: z.string().max(256).optional(),
})

const list: OperationDescription = {
  summary: 'List registered agents',
  description: 'A caller sees the agents that it may call. `status=left` requires the scope agent:admin.',
  tag: 'registry',
  access: 'optional',
  query: listQuery,
  responses: {
    200: {
      description: 'A page of agents, sorted by slug',
      json: entryListAnswer,
      headers: { 'x-next-cursor': 'The cursor of the next page, if there is one' },
    },
  },
}

const read: OperationDescription = {
  summary: 'Read an agent by its ID, slug or DID',
  tag: 'registry',
  access: 'optional',
  responses: { 200: { description: 'The agent', json: entryAnswer } },
}

const beat: OperationDescription = {
  summary: 'Renew the lease of an agent and report its load',
  tag: 'registry',
  access: 'agent:write',
  body: { json: heartbeatIn },
  responses: { 200: { description: 'The agent and the length of its lease', json: leaseAnswer } },
}

/**
 * Adds `GET /registry/agents` (operators may pass `status=left`), `GET /registry/agents/{id}` and
 * `PUT /registry/agents/{id}/heartbeat`.
 */
export function addRegistryRoutes(app: FastifyInstance, routes: RegistryRoutes): void {
  const { registry, gatewayUrl, proofOf, access } = routes
  app.get('/registry/agents', { config: { api: list } }, async (request, reply) => {
    const query = parseParams(listQuery, request.query)
    const matches = await searchFor(routes, request, query)
    const from = query.cursor === undefined ? '' : slugOfCursor(query.cursor)
    const rest = matches.filter(({ slug }) => slug > from)
    const page = rest.slice(0, query.limit)
    const last = page.at(-1)
    const cursor = last !== undefined && rest.length > page.length ? cursorOf(last.slug) : undefined
    if (cursor !== undefined) reply.header('x-next-cursor', cursor)
    const agents = await Promise.all(
      page.map(async (entry) => ({ ...entrySummary(entry, gatewayUrl), proof: await proofOf(entry) })),
    )
    return entryListOut(agents, matches.length, cursor)
  })
  app.get<{ Params: { id: string } }>('/registry/agents/:id', { config: { api: read } }, async (request) => {
    const caller = await access.callerOf(request, routes.authenticator)
    const { id } = request.params
    const entry = (await access.agentsFor(caller)).find(id) ?? ownEntry(registry, id, caller)
    if (entry === undefined) {
      await access.auditHidden('registry.read', id, caller, request)
      throw agentNotFoundError()
    }
    return entryDetailWithProof(routes, entry)
  })
  const heartbeat = { config: { api: beat, trace: 'never' as const } }
  app.put<{ Params: { id: string } }>('/registry/agents/:id/heartbeat', heartbeat, async (request) => {
    const caller = await authenticateOwner(routes, request)
    const { outcomes = [], replicaId, ...load } = parseParams(heartbeatIn, parseJson(bodyOf(request)))
    const entry = await registry.findOrSync(request.params.id, replicaId)
    // Entries that belong to other owners are reported as not found.
    if (entry === undefined || entry.owner !== caller) throw agentNotFoundError()
    const renewed = registry.heartbeat(entry.id, withoutUndefined(load), replicaId)
    routes.onHeartbeat?.(
      entry.id,
      renewed.before,
      renewed.now,
      isUnvetted(entry) ? unrated(outcomes) : outcomes,
    )
    return renewalOut(summaryOf(renewed.entry, gatewayUrl), registry.leaseMs / 1000)
  })
}

/** Removes the ratings that an unvetted agent reports, because it could rate itself. */
function unrated(outcomes: readonly TaskOutcome[]): TaskOutcome[] {
  return outcomes.map(({ taskId, state }) => ({ taskId, state }))
}

/** Only operators can list unregistered agents. */
async function searchFor(
  { registry, authenticator, access }: RegistryRoutes,
  request: FastifyRequest,
  { status, ...query }: z.infer<typeof listQuery>,
): Promise<AgentEntry[]> {
  const words = withoutUndefined(query)
  if (status !== 'left') {
    const agents = await access.agentsFor(await access.callerOf(request, authenticator))
    return searchAgents(agents.all(), { ...words, ...(status && { status }) })
  }
  const caller = await authenticator.authenticate(request)
  request.callerId = caller.id
  requireNoDelegate(caller)
  requireScope(caller, 'agent:admin')
  return searchAgents(registry.left(), words)
}

/** A client sees the agents that it has registered itself, even if it may not call them. */
function ownEntry(registry: Registry, id: string, caller: Caller | undefined): AgentEntry | undefined {
  const entry = caller === undefined ? undefined : registry.find(id)
  return entry?.owner === caller?.id ? entry : undefined
}

/** Returns one entry in full, with the gateway's proof. */
export async function entryDetailWithProof({ gatewayUrl, proofOf }: RegistryRoutes, entry: AgentEntry) {
  return { ...entryDetail(entry, gatewayUrl), proof: await proofOf(entry) }
}

/** Authenticates a client that manages its own agents. */
async function authenticateOwner(
  { authenticator }: RegistryRoutes,
  request: FastifyRequest,
): Promise<string> {
  const caller = await authenticator.authenticate(request, bodyOf(request))
  request.callerId = caller.id
  requireNoDelegate(caller)
  requireScope(caller, 'agent:write')
  return caller.id
}

export const agentNotFoundError = () =>
  new ParleyError('NotFound', { message: 'Agent not found', data: { reason: 'agent' } })

const cursorOf = (slug: string) => Buffer.from(slug).toString('base64url')

function slugOfCursor(cursor: string): string {
  const slug = Buffer.from(cursor, 'base64url').toString('utf8')
  if (/^[a-z0-9-]{1,63}$/.test(slug) && cursorOf(slug) === cursor) return slug
  const issues = [{ path: 'cursor', message: 'is not a valid cursor' }]
  throw new ParleyError('InvalidParams', { data: { issues } })
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(object: T): Defined<T> {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as Defined<T>
}
