import { randomBytes } from 'node:crypto'
import { hashOf, keyText } from '@parley/kit/database/keys'
import { insertUnlessThere, isDuplicate } from '@parley/kit/database/mongodb/database'
import { untilDone } from '@parley/kit/database/retry'
import { Binary, type Collection } from 'mongodb'
import { type GatewayMongodb, gatewayScope } from '../../../store/mongodb/database.ts'
import { type DecisionBounds, decisionBounds } from '../decision-quotas.ts'
import type { ClaimedTasksQuery, Route, RouteKind, RoutingStore } from '../routing-store.ts'
import { mongodbDecisions } from './decisions.ts'
import { removeOldRouting } from './retention.ts'
import { mongodbSentenceVectors } from './sentence-vectors.ts'
import { mongodbTrainingExamples } from './training-examples.ts'

export interface RouteDocument {
  _id: string
  agent_id: string
  owner: string
  kind: RouteKind
  route_id: string
  agent: string
  context?: string
  at: number
  placing?: string
  /** Set while the route still has words. */
  waits?: true
  claim_until?: number
  claim_verified_until?: number
  /** The route as JSON, without its claim. */
  body: string
}

export interface RouteAgentDocument {
  _id: string
  agent_id: string
  owner: string
  agent: string
  at: number
}

interface SettingDocument {
  _id: string
  agent_id: string
  key: Binary
}

const scope = { agent_id: gatewayScope }

/**
 * The routing store of gateways that share a MongoDB database. A task's route also yields the agent of its context,
 * in case the process crashed before the route of the context was written.
 */
export function mongodbRoutingStore(
  database: GatewayMongodb,
  bounds: DecisionBounds = decisionBounds,
): RoutingStore {
  return {
    shared: true,
    ...database.guard(
      {
        ...routesOf(database),
        ...mongodbDecisions(database),
        ...settingsOf(database, bounds),
        ...mongodbTrainingExamples(database),
        ...mongodbSentenceVectors(database),
      },
      new Set(['trainingExamples', 'removeOld', 'removeContext']),
    ),
  }
}

function routesOf(database: GatewayMongodb) {
  const routes = database.collection<RouteDocument>('routes')
  const agents = database.collection<RouteAgentDocument>('route_agents')
  const save = async (all: readonly Route[]): Promise<void> => {
    const used = all.filter(({ kind }) => kind === 'task')
    await Promise.all([writeRoutes(routes, all), ...used.map((route) => touch(agents, route))])
  }
  return {
    find: (owner: string, kind: RouteKind, id: string) => findRoute(routes, owner, kind, id),
    save,
    queueRoutes: save,
    verifyClaim: async (route: Route, verifiedUntil: number): Promise<void> => {
      const { _id, agent } = routeDocument(route)
      const same = { _id, ...scope, agent, claim_until: { $exists: true } }
      await routes.updateOne(same, { $set: { claim_verified_until: verifiedUntil } })
    },
    claim: async (route: Route): Promise<Route> => {
      const document = routeDocument(route)
      if (await insertUnlessThere(routes, document)) return route
      const before = await routes.findOne({ _id: document._id, ...scope })
      return before === null ? route : routeIn(before)
    },
    exchange: async (before: Route, after: Route | undefined): Promise<boolean> => {
      const { _id, agent, placing } = routeDocument(before)
      const same = { _id, ...scope, agent, placing: placing ?? { $exists: false } }
      if (after === undefined) return (await routes.deleteOne(same)).deletedCount === 1
      return (await routes.replaceOne(same, routeDocument(after))).matchedCount === 1
    },
    remove: async (owner: string, kind: RouteKind, id: string) =>
      void (await routes.deleteOne({ _id: idOf(owner, kind, id), ...scope })),
    removeContext: async (owner: string, context: string): Promise<void> => {
      await routes.deleteMany({ ...scope, owner: keyText(owner), context: keyText(context) })
      await routes.deleteOne({ _id: idOf(owner, 'context', context), ...scope })
    },
    saveUse: (owner: string, agent: string): Promise<void> => touch(agents, { owner, agent, at: Date.now() }),
    agentsOf: async (owner: string, limit: number): Promise<string[]> => {
      const found = agents.find({ ...scope, owner: keyText(owner) }).sort({ at: -1 })
      return (await found.limit(limit).toArray()).map(({ agent }) => agent)
    },
    claimedTasks: (query: ClaimedTasksQuery) => claimedTasks(routes, query),
    waiting: async (agent: string, taskIds: readonly string[]): Promise<Route[]> => {
      const ids = { $in: taskIds.map(keyText) }
      const waits = {
        ...scope,
        route_id: ids,
        agent: keyText(agent),
        kind: 'task' as const,
        waits: true as const,
      }
      return (await routes.find(waits).toArray()).map(routeIn)
    },
    takeWords: (owner: string, id: string) => takeWords(routes, owner, id),
  }
}

function takeWords(
  routes: Collection<RouteDocument>,
  owner: string,
  id: string,
): Promise<Record<string, number> | undefined> {
  return untilDone(async () => {
    const _id = idOf(owner, 'task', id)
    const found = await routes.findOne({ _id, ...scope, waits: true })
    if (found === null) return { words: undefined }
    const { words, claim: _, ...route } = routeIn(found)
    const same = { _id, ...scope, waits: true as const, body: found.body }
    const taken = { $set: { body: JSON.stringify(route) }, $unset: { waits: '' as const } }
    return (await routes.updateOne(same, taken)).modifiedCount === 1 ? { words } : undefined
  }).then(({ words }) => words)
}

async function claimedTasks(
  routes: Collection<RouteDocument>,
  { owner, agent, id, from, to, limit }: ClaimedTasksQuery,
): Promise<Route[]> {
  const bounds = {
    $exists: true,
    ...(from !== undefined && { $gte: from }),
    ...(to !== undefined && { $lt: to }),
  }
  const filter = {
    ...scope,
    kind: 'task' as const,
    claim_until: bounds,
    ...(owner !== undefined && { owner: keyText(owner) }),
    ...(agent !== undefined && { agent: keyText(agent) }),
    ...(id !== undefined && { route_id: keyText(id) }),
  }
  return (await routes.find(filter).sort({ claim_until: -1 }).limit(limit).toArray()).map(routeIn)
}

async function findRoute(
  routes: Collection<RouteDocument>,
  owner: string,
  kind: RouteKind,
  id: string,
): Promise<Route | undefined> {
  const found = await routes.findOne({ _id: idOf(owner, kind, id), ...scope })
  if (found !== null) return routeIn(found)
  if (kind !== 'context') return undefined
  const task = await routes.findOne({ ...scope, owner: keyText(owner), context: keyText(id) })
  if (task === null) return undefined
  const { agent, at, claim } = routeIn(task)
  return { owner, kind, id, agent, at, ...(claim && { claim }) }
}

/** Writes the routes in order, so that a crash loses only the later ones. */
async function writeRoutes(routes: Collection<RouteDocument>, all: readonly Route[]): Promise<void> {
  for (const route of all) if (route.claim !== undefined) await writeClaim(routes, route)
  await writeOwn(
    routes,
    all.filter(({ claim }) => claim === undefined),
  )
}

/** Inserts the route or replaces one to the same agent. A route to another agent causes a duplicate `_id` and is kept. */
async function writeClaim(routes: Collection<RouteDocument>, route: Route): Promise<void> {
  const replacement = routeDocument(route)
  const { _id, agent } = replacement
  await untilDone(async () => {
    try {
      await routes.replaceOne({ _id, ...scope, agent }, replacement, { upsert: true })
      return true
    } catch (error) {
      if (!isDuplicate(error)) throw error
      const there = await routes.findOne({ _id, ...scope })
      // The route was written or removed concurrently, so try again.
      return there === null || there.agent === agent ? undefined : true
    }
  })
}

async function writeOwn(routes: Collection<RouteDocument>, all: readonly Route[]): Promise<void> {
  if (all.length === 0) return
  const writes = all.map((route) => {
    const replacement = routeDocument(route)
    return {
      replaceOne: { filter: { _id: replacement._id, agent_id: gatewayScope }, replacement, upsert: true },
    }
  })
  await untilDone(async () => {
    try {
      await routes.bulkWrite(writes, { ordered: true })
      return true
    } catch (error) {
      // Two first writes of one route ran concurrently, so the retry replaces it.
      if (isDuplicate(error)) return undefined
      throw error
    }
  })
}

async function touch(
  agents: Collection<RouteAgentDocument>,
  { owner, agent, at }: Pick<Route, 'owner' | 'agent' | 'at'>,
): Promise<void> {
  const _id = `${gatewayScope}/${hashOf(owner, agent)}`
  const fields = { owner: keyText(owner), agent: keyText(agent) }
  await untilDone(async () => {
    try {
      await agents.updateOne({ _id, ...scope }, { $set: fields, $max: { at } }, { upsert: true })
      return true
    } catch (error) {
      if (isDuplicate(error)) return undefined
      throw error
    }
  })
}

function settingsOf(database: GatewayMongodb, bounds: DecisionBounds) {
  const settings = database.collection<SettingDocument>('gateway_settings')
  return {
    /** The first gateway creates the key, so all gateways can read each other's cursors. */
    cursorKey: async (): Promise<Uint8Array> => {
      const ours = { _id: `${gatewayScope}/cursor_key`, ...scope }
      const made = new Binary(randomBytes(32))
      if (await insertUnlessThere(settings, { ...ours, key: made })) return made.buffer
      const key = (await settings.findOne(ours))?.key
      if (key === undefined) throw new Error('The cursor key is missing in the store')
      return key.buffer
    },
    removeOld: (before: Parameters<RoutingStore['removeOld']>[0], limit: number) =>
      removeOldRouting(database, { before, bounds }, limit),
  }
}

const idOf = (owner: string, kind: string, id: string) => `${gatewayScope}/${hashOf(owner, kind, id)}`

export function routeDocument(route: Route): RouteDocument {
  const { claim, ...body } = route
  const { owner, kind, id, agent, context, at, words, placing } = body
  return {
    _id: idOf(owner, kind, id),
    ...scope,
    owner: keyText(owner),
    kind,
    route_id: keyText(id),
    agent: keyText(agent),
    ...(context !== undefined && { context: keyText(context) }),
    at,
    ...(placing !== undefined && { placing: keyText(placing) }),
    ...(words !== undefined && { waits: true as const }),
    ...(claim !== undefined && { claim_until: claim.until, claim_verified_until: claim.verifiedUntil }),
    body: JSON.stringify(body),
  }
}

function routeIn({
  body,
  claim_until: until,
  claim_verified_until: verifiedUntil = 0,
}: RouteDocument): Route {
  const route: Route = JSON.parse(body)
  return until === undefined ? route : { ...route, claim: { until, verifiedUntil } }
}
