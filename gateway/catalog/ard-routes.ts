import { createHash } from 'node:crypto'
import type { Authenticator } from '@parley/kit/auth/authenticate'
import { Cursors } from '@parley/kit/database/cursor'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { sendCacheable } from '@parley/kit/http/send-cacheable'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { AgentDirectory } from '../registry/agent-policies.ts'
import type { CallerAccess } from '../registry/caller-access.ts'
import { ardErrors } from './ard-errors.ts'
import { ardApi, exploreRequest, listRequest, searchRequest } from './ard-schemas.ts'
import type { CatalogEntries, ListedEntry } from './catalog-entry.ts'
import { type CatalogSearch, compareFound, positionOf } from './catalog-search.ts'
import type { CatalogSources } from './catalog-sources.ts'
import { checkPath, filterOf, matchesFilter } from './entry-filter.ts'
import { facetOf } from './facets.ts'
import { listFilter, listOrder } from './list-query.ts'

export interface ArdRoutes {
  entries: CatalogEntries
  search: CatalogSearch
  catalogs: CatalogSources
  gatewayUrl: string
  access: CallerAccess
  authenticator: Pick<Authenticator, 'authenticate'>
  cursorKey: Uint8Array
}

const bodyMaxBytes = 64 * 1024
/** A position holds the texts by which a list is sorted. */
const tokenMaxChars = 4096
const foundPosition = z.tuple([z.number(), z.string()])
const listPosition = z.array(z.string())

/** Adds `POST /search`, `POST /explore` and `GET /agents` (spec/catalog.md#search). All are public. */
export function addArdRoutes(app: FastifyInstance, routes: ArdRoutes): void {
  const cursors = new Cursors(routes.cursorKey, tokenMaxChars)
  addSearch(app, routes, cursors)
  addExplore(app, routes)
  addList(app, routes, cursors)
}

const optionsOf = (api: OperationDescription) => ({
  bodyLimit: bodyMaxBytes,
  config: { rest: ardErrors, api },
})

function addSearch(app: FastifyInstance, routes: ArdRoutes, cursors: Cursors): void {
  const { search, catalogs, gatewayUrl } = routes
  app.post('/search', optionsOf(ardApi.search), async (request, reply) => {
    const { query, federation, pageSize, pageToken } = readBody(searchRequest, request)
    const filter = filterOf(query.filter)
    const { agents, owner } = await senderOf(routes, request)
    const list = listName('search', [query.text, query.filter ?? {}])
    const after = pageToken && positionIn(foundPosition, cursors, { list, owner, pageToken })
    const found = await search.find(query.text, agents)
    const rest = found
      .filter(({ listed }) => matchesFilter(listed.entry, filter))
      .filter((one) => !after || compareFound(positionOf(one), after) > 0)
    const page = rest.slice(0, pageSize)
    const last = rest.length > page.length ? page.at(-1) : undefined
    const results = page.map(async ({ listed, score, reasons }) => {
      const { representativeQueries: _indexed, metadata, ...entry } = await listed.complete()
      return { ...entry, metadata: { ...metadata, reasons }, score, source: `${gatewayUrl}/` }
    })
    void reply.header('cache-control', 'no-store')
    return {
      results: await Promise.all(results),
      // This registry queries no others.
      ...(federation === 'referrals' && { referrals: catalogs.referrals() }),
      ...(last && { pageToken: cursors.seal(list, owner, positionOf(last)) }),
    }
  })
}

function addExplore(app: FastifyInstance, routes: ArdRoutes): void {
  const { search } = routes
  app.post('/explore', optionsOf(ardApi.explore), async (request, reply) => {
    const { query, resultType } = readBody(exploreRequest, request)
    const filter = filterOf(query.filter)
    for (const { field } of resultType.facets) checkPath(field)
    const { agents } = await senderOf(routes, request)
    const all =
      query.text === undefined
        ? listedEntries(routes, agents).map(({ entry }) => entry)
        : (await search.find(query.text, agents)).map(({ listed }) => listed.entry)
    const matching = all.filter((entry) => matchesFilter(entry, filter))
    void reply.header('cache-control', 'no-store')
    const facets = resultType.facets.map((facet) => [facet.field, facetOf(matching, facet)])
    return { resultType: 'facets', facets: Object.fromEntries(facets) }
  })
}

function addList(app: FastifyInstance, routes: ArdRoutes, cursors: Cursors): void {
  app.get('/agents', optionsOf(ardApi.list), async (request, reply) => {
    const { filter, orderBy, pageSize, pageToken } = parseParams(listRequest, request.query)
    const isMatching = filter === undefined ? () => true : listFilter(filter)
    const { keyOf, compare } = listOrder(orderBy)
    const { agents, owner } = await senderOf(routes, request)
    const list = listName('agents', [filter ?? '', orderBy ?? ''])
    const after = pageToken && positionIn(listPosition, cursors, { list, owner, pageToken })
    const matching = listedEntries(routes, agents).filter(isMatching)
    const rest = matching
      .map((listed) => ({ listed, key: keyOf(listed) }))
      .filter(({ key }) => !after || compare(key, after) > 0)
      .toSorted((a, b) => compare(a.key, b.key))
    const page = rest.slice(0, pageSize)
    const last = rest.length > page.length ? page.at(-1) : undefined
    const items = await Promise.all(page.map(({ listed }) => listed.complete()))
    const next = last && cursors.seal(list, owner, last.key)
    const json = JSON.stringify({ items, total: matching.length, pageToken: next })
    return sendCacheable(request, reply, json, { perCaller: true })
  })
}

/** Returns the agents that the sender may see, and the owner of its page tokens. */
async function senderOf({ access, authenticator }: ArdRoutes, request: FastifyRequest) {
  const caller = await access.callerOf(request, authenticator)
  return { agents: await access.agentsFor(caller), owner: caller?.id ?? '' }
}

function listedEntries({ entries, catalogs }: ArdRoutes, agents: AgentDirectory): ListedEntry[] {
  const ofGateway = entries.ofGateway().map((entry) => ({ entry, complete: async () => entry }))
  return [...ofGateway, ...entries.ofAgents(agents), ...catalogs.all()]
}

function readBody<T extends z.ZodType>(schema: T, request: FastifyRequest): z.output<T> {
  requireJson(request)
  return parseParams(schema, parseJson(bodyOf(request)))
}

/** A page token is valid for one query only. */
const listName = (route: string, query: unknown) =>
  `ard/${route} ${createHash('sha256').update(JSON.stringify(query)).digest('base64url')}`

function positionIn<T extends z.ZodType>(
  schema: T,
  cursors: Cursors,
  { list, owner, pageToken }: { list: string; owner: string; pageToken: string },
): z.output<T> {
  try {
    return schema.parse(cursors.open(list, owner, pageToken))
  } catch (cause) {
    const message = 'is not a token of this query; request the first page again'
    throw new ParleyError('InvalidParams', { data: { issues: [{ path: 'pageToken', message }] }, cause })
  }
}
