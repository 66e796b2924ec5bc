import { sendCacheable } from '@parley/kit/http/send-cacheable'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AgentsFor } from '../http/discovery-routes.ts'
import type { Negotiator } from '../routing/negotiation/negotiator.ts'
import { ardErrors } from './ard-errors.ts'
import { type ArdRoutes, addArdRoutes } from './ard-routes.ts'
import { catalogApi, catalogQuery } from './ard-schemas.ts'
import { artifactTypes, CatalogEntries, type CatalogEntry, type CatalogOptions } from './catalog-entry.ts'
import { CatalogSearch } from './catalog-search.ts'
import { serverCardApi, serverCardOf } from './server-card.ts'

export interface CatalogRoutes extends CatalogOptions, Omit<ArdRoutes, 'entries' | 'search'> {
  agentsFor: AgentsFor
  negotiator: Negotiator
}

/** The agents of one document. More agents are in nested catalogs. */
const agentsPerPart = 500
const paths = {
  '/.well-known/ai-catalog.json': artifactTypes.catalog,
  '/.well-known/ard.json': 'application/json',
}

/** Adds the catalog documents, the ARD API and the server cards to which the catalog refers (spec/catalog.md#catalog-and-search). */
export function addCatalogRoutes(app: FastifyInstance, routes: CatalogRoutes): void {
  const entries = new CatalogEntries(routes)
  for (const [path, type] of Object.entries(paths))
    app.get(path, { config: { rest: ardErrors, api: catalogApi(type) } }, async (request, reply) => {
      const { part } = parseParams(catalogQuery, request.query)
      const written = await documentOf(entries, routes, request, { path, part })
      return sendCacheable(request, reply, JSON.stringify(written), { perCaller: true, type })
    })
  addServerCardRoutes(app, routes)
  addArdRoutes(app, { ...routes, entries, search: new CatalogSearch({ ...routes, entries }) })
}

/** @throws ParleyError NotFound for a part after the last one */
async function documentOf(
  entries: CatalogEntries,
  { agentsFor, gatewayUrl }: CatalogRoutes,
  request: FastifyRequest,
  { path, part }: { path: string; part: number | undefined },
) {
  const agents = (await agentsFor(request)).admitted()
  const parts = Math.ceil(agents.length / agentsPerPart)
  if (part !== undefined && part > parts)
    throw new ParleyError('NotFound', { message: `The catalog has ${parts} parts` })
  const isWhole = part === undefined && parts <= 1
  const shown = isWhole
    ? agents
    : part === undefined
      ? []
      : agents.slice((part - 1) * agentsPerPart, part * agentsPerPart)
  const nested: CatalogEntry[] = Array.from(
    { length: isWhole || part !== undefined ? 0 : parts },
    (_, at) => ({
      ...entries.catalogPart(at + 1),
      url: `${gatewayUrl}${path}?part=${at + 1}`,
    }),
  )
  const ofAgents = shown.flatMap((agent) => entries.ofAgent(agent))
  return {
    specVersion: '1.0',
    host: entries.host,
    entries: [
      ...(part === undefined ? entries.ofGateway() : []),
      ...nested,
      ...(await Promise.all(ofAgents.map((listed) => listed.complete()))),
    ],
  }
}

/** Adds the MCP server cards at the path below the address of each server that MCP reserves for them. */
function addServerCardRoutes(app: FastifyInstance, { agentsFor, gatewayUrl, version }: CatalogRoutes): void {
  const options = { perCaller: true, type: artifactTypes.mcp }
  app.get('/mcp/server-card', { config: { api: serverCardApi } }, async (request, reply) => {
    const card = serverCardOf(gatewayUrl, {
      name: 'parley',
      version,
      description: 'A gateway to many agents',
    })
    return sendCacheable(request, reply, JSON.stringify(card), { type: artifactTypes.mcp })
  })
  app.get<{ Params: { slug: string } }>(
    '/agents/:slug/mcp/server-card',
    { config: { api: serverCardApi } },
    async (request, reply) => {
      const entry = (await agentsFor(request)).bySlug(request.params.slug)
      if (entry === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
      const { name: title, description, card, slug } = entry
      const version = typeof card['version'] === 'string' ? card['version'] : '0'
      const written = serverCardOf(gatewayUrl, { name: slug, slug, title, description, version })
      return sendCacheable(request, reply, JSON.stringify(written), options)
    },
  )
}
