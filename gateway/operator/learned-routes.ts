import type { OperationDescription } from '@parley/kit/http/route-description'
import { forgetQuery, forgottenAnswer, learnedAnswer } from '@parley/wire/codecs/answers/operator/records'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AgentEntry } from '../registry/entry.ts'
import type { OperatorParts } from './operator-routes.ts'
import { authenticateOperator } from './view.ts'

const readApi: OperationDescription = {
  summary: 'Read what the gateway has learned about an agent',
  tag: 'operator',
  access: 'agent:admin',
  responses: { 200: { description: 'The sums of its training examples', json: learnedAnswer } },
}
const forgetApi: OperationDescription = {
  summary: 'Forget what the gateway has learned about an agent',
  tag: 'operator',
  access: 'agent:admin',
  query: forgetQuery,
  responses: { 200: { description: 'The number of removed training examples', json: forgottenAnswer } },
}

type Parts = Pick<OperatorParts, 'authenticator' | 'config' | 'routing' | 'registry' | 'looks'>
type Request = FastifyRequest<{ Params: { id: string } }>

const callersMax = 20
/** Number of characters of a caller's hash that are shown. */
const shownLength = 10

/** Adds `GET` and `DELETE /operator/agents/{id}/learned` (spec/operator.md#learned). */
export function addLearnedRoutes(app: FastifyInstance, parts: Parts): void {
  const { routing, looks } = parts
  const path = '/operator/agents/:id/learned'
  app.get(path, { config: { api: readApi } }, async (request: Request, reply) => {
    const view = await authenticateOperator(parts, request)
    const entry = entryOf(parts, request)
    if (view.texts) looks.recordList(request, `learned ${entry.slug}`)
    void reply.header('cache-control', 'no-store')
    return learnedOut(routing.learned, entry, view.texts)
  })
  app.delete(
    path,
    { config: { api: forgetApi, audit: 'operator.forget_learned' } },
    async (request: Request, reply) => {
      await authenticateOperator(parts, request)
      const entry = entryOf(parts, request)
      const { caller } = parseParams(forgetQuery, request.query)
      request.auditTarget = caller === undefined ? entry.slug : `${entry.slug} of caller ${caller}`
      void reply.header('cache-control', 'no-store')
      return { agent: entry.slug, forgotten: await routing.learned.forget(entry, caller) }
    },
  )
}

/** @throws ParleyError NotFound */
function entryOf({ registry }: Parts, request: Request): AgentEntry {
  const entry = registry.findIncludingLeft(request.params.id)
  if (entry === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
  return entry
}

/** @param texts whether words of callers' messages are shown */
async function learnedOut(learned: Parts['routing']['learned'], entry: AgentEntry, texts: boolean) {
  const { since, callers, raisesScore, missing, words, ...counts } = await learned.describe(entry)
  return {
    agent: entry.slug,
    learning: learned.learns,
    ...counts,
    since: since === undefined ? null : timeOut(since),
    raises_score: learned.learns && raisesScore,
    missing,
    callers_total: callers.length,
    callers: callers.slice(0, callersMax).map(({ caller, since: from, ...own }) => ({
      caller: caller.slice(0, shownLength),
      ...own,
      since: timeOut(from),
    })),
    words: texts ? words : null,
  }
}

const timeOut = (ms: number) => timestampOf(ms * 1000)
