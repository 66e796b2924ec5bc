import type { Collection, Filter } from 'mongodb'
import { type GatewayMongodb, gatewayScope } from '../../../store/mongodb/database.ts'
import { type DecisionBounds, holdersMax, surplusOf } from '../decision-quotas.ts'
import { type RoutingStore, sentenceVectorsMax } from '../routing-store.ts'
import type { DecisionDocument } from './decisions.ts'
import type { RouteAgentDocument, RouteDocument } from './routing.ts'
import type { SentenceVectorDocument } from './sentence-vectors.ts'
import type { TrainingExampleDocument } from './training-examples.ts'

interface Old {
  _id: string
  agent_id: string
  at: number
}

/** Above this number, the oldest examples are removed. */
const trainingExamplesMax = 100_000
/** Removed examples remain as tombstones for this long, so that every gateway sees the removal. */
const tombstonesForMs = 10 * 60_000

/** Implements `RoutingStore.removeOld`. Several gateways may run it concurrently. */
export async function removeOldRouting(
  database: GatewayMongodb,
  { before, bounds }: { before: Parameters<RoutingStore['removeOld']>[0]; bounds: DecisionBounds },
  limit: number,
): Promise<number> {
  const routes = database.collection<RouteDocument>('routes')
  const decisions = database.collection<DecisionDocument>('decisions')
  const lessons = database.collection<TrainingExampleDocument>('lessons')
  const agents = database.collection<RouteAgentDocument>('route_agents')
  const vectors = database.collection<SentenceVectorDocument>('sentence_vectors')
  const forgotten = { body: { $exists: false }, at: { $lt: Date.now() - tombstonesForMs } }
  const counts = [
    await remove(routes, { kind: 'task', at: { $lt: before.routes } }, limit),
    await remove(routes, { kind: 'context', at: { $lt: before.routes } }, limit),
    await remove(routes, { kind: 'session', at: { $lt: before.routes } }, limit),
    await removeExpiredClaims(routes, before.claims, limit),
    await remove(routes, { kind: 'key', at: { $lt: before.keys } }, limit),
    await remove(routes, { kind: 'priced', at: { $lt: before.keys } }, limit),
    await remove(routes, { kind: 'unrated', at: { $lt: before.keys } }, limit),
    await remove(decisions, { at: { $lt: before.decisions } }, limit),
    await removeSurplus(decisions, false, bounds.callers, limit),
    await removeSurplus(decisions, true, bounds.anonymous, limit),
    await remove(lessons, { at: { $lt: before.trainingExamples } }, limit),
    await remove(lessons, forgotten, limit),
    await removeBeyond(lessons, trainingExamplesMax, limit),
    await remove(vectors, { at: { $lt: before.sentenceVectors } }, limit),
    await removeBeyond(vectors, sentenceVectorsMax, limit),
    await remove(agents, { at: { $lt: before.routes } }, limit),
  ]
  return counts.reduce((sum, count) => sum + count, 0)
}

async function remove<T extends Old>(all: Collection<T>, old: Filter<T>, limit: number): Promise<number> {
  const filter = { ...old, agent_id: gatewayScope } as Filter<T>
  const found = await all
    .find(filter)
    .sort({ at: 1 })
    .limit(limit)
    .project<{ _id: string }>({ _id: 1 })
    .toArray()
  if (found.length === 0) return 0
  const ids = { _id: { $in: found.map(({ _id }) => _id) } } as Filter<T>
  return (await all.deleteMany({ ...filter, ...ids })).deletedCount
}

async function removeExpiredClaims(
  routes: Collection<RouteDocument>,
  before: number,
  limit: number,
): Promise<number> {
  const filter = { agent_id: gatewayScope, claim_until: { $lt: before } }
  const found = await routes.find(filter).limit(limit).project<{ _id: string }>({ _id: 1 }).toArray()
  if (found.length === 0) return 0
  const ids = { _id: { $in: found.map(({ _id }) => _id) } }
  return (await routes.deleteMany({ ...filter, ...ids })).deletedCount
}

async function removeBeyond<T extends Old>(all: Collection<T>, keep: number, limit: number): Promise<number> {
  const tooMany = (await all.countDocuments({ agent_id: gatewayScope } as Filter<T>)) - keep
  return tooMany <= 0 ? 0 : remove(all, {} as Filter<T>, Math.min(tooMany, limit))
}

/** Removes records beyond the maximum from the holders with the most records. */
async function removeSurplus(
  decisions: Collection<DecisionDocument>,
  anonymous: boolean,
  keep: number,
  limit: number,
): Promise<number> {
  const kind = { agent_id: gatewayScope, anonymous }
  const excess = (await decisions.countDocuments(kind)) - keep
  if (excess <= 0) return 0
  const counts = await decisions
    .aggregate<{ _id: string; count: number }>([
      { $match: kind },
      { $group: { _id: '$holder', count: { $sum: 1 } } },
      { $sort: { count: -1 } },
      { $limit: holdersMax },
    ])
    .toArray()
  const holders = counts.map(({ _id, count }) => ({ holder: _id, count }))
  let removed = 0
  for (const { holder, count } of surplusOf(holders, Math.min(limit, excess)))
    removed += await remove(decisions, { anonymous, holder }, count)
  return removed
}
