import { setImmediate as nextTurn } from 'node:timers/promises'
import { Cursors } from '@parley/kit/database/cursor'
import type { OperationDescription } from '@parley/kit/http/route-description'
import {
  auditList,
  auditQuery,
  historyAnswer,
  historyQuery,
} from '@parley/wire/codecs/answers/operator/records'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { AuditEntry } from '../records/audit-entries.ts'
import type { OperatorParts } from './operator-routes.ts'
import { authenticateOperator } from './view.ts'

const auditApi: OperationDescription = {
  summary: 'Search the audit log, newest first',
  tag: 'operator',
  access: 'agent:admin',
  query: auditQuery,
  responses: { 200: { description: 'A page of the audit log', json: auditList } },
}
const historyApi: OperationDescription = {
  summary: 'List the changes of an agent’s health and admission, newest first',
  tag: 'operator',
  access: 'agent:admin',
  query: historyQuery,
  responses: { 200: { description: 'A page of changes', json: historyAnswer } },
}

type Parts = Pick<OperatorParts, 'authenticator' | 'config' | 'routing' | 'registry' | 'state'>

/** Number of entries read together, and the number that one page examines. A search continues with the cursor. */
const batchSize = 500
const scanMax = 10_000
const position = z.number()

/** Adds `GET /operator/audit` and `GET /operator/agents/{id}/history` (spec/operator.md#audit, #history). */
export function addAuditRoutes(app: FastifyInstance, parts: Parts): void {
  const { registry, state, routing } = parts
  const cursors = new Cursors(routing.cursorKey)
  app.get('/operator/audit', { config: { api: auditApi } }, async (request, reply) => {
    const { caller } = await authenticateOperator(parts, request)
    void reply.header('cache-control', 'no-store')
    return auditPage(state.audit, { cursors, caller }, parseParams(auditQuery, request.query))
  })
  app.get(
    '/operator/agents/:id/history',
    { config: { api: historyApi } },
    async (request: FastifyRequest<{ Params: { id: string } }>, reply) => {
      const { caller } = await authenticateOperator(parts, request)
      const { limit, cursor } = parseParams(historyQuery, request.query)
      const entry = registry.findIncludingLeft(request.params.id)
      if (entry === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
      const list = `history ${entry.id}`
      const before = cursor === undefined ? undefined : position.parse(cursors.open(list, caller, cursor))
      const found = await state.history.list(entry.id, { limit, ...(before !== undefined && { before }) })
      const last = found.length < limit ? undefined : found.at(-1)
      void reply.header('cache-control', 'no-store')
      return {
        history: found.map(({ at, kind, reason, by }) => ({
          at: timestampOf(at),
          kind,
          reason: reason ?? null,
          by: by ?? null,
        })),
        next_cursor: last === undefined ? null : cursors.seal(list, caller, last.at),
      }
    },
  )
}

type Filters = z.output<typeof auditQuery>

async function auditPage(
  audit: Parts['state']['audit'],
  { cursors, caller }: { cursors: Cursors; caller: string },
  { cursor, limit, ...filters }: Filters,
) {
  const list = `audit ${JSON.stringify(filters)}`
  const { since, until, allowed } = filters
  const after = since === undefined ? 0 : Date.parse(since) * 1000 - 1
  let before = until === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(until) * 1000
  if (cursor !== undefined) before = position.parse(cursors.open(list, caller, cursor))
  const entries: ReturnType<typeof auditEntryOut>[] = []
  let isLast = false
  for (let examined = 0; !isLast && entries.length < limit && examined < scanMax; ) {
    if (examined > 0) await nextTurn()
    const found = await audit.list({ after, before, allowed, limit: batchSize })
    isLast = found.length < batchSize
    for (const [number, entry] of found.entries()) {
      before = entry.at
      examined += 1
      if (matches(entry, filters)) entries.push(auditEntryOut(entry))
      if (entries.length < limit) continue
      isLast = isLast && number === found.length - 1
      break
    }
  }
  return { entries, next_cursor: isLast ? null : cursors.seal(list, caller, before) }
}

function matches(
  entry: AuditEntry,
  { who, action, target }: Pick<Filters, 'who' | 'action' | 'target'>,
): boolean {
  if (who !== undefined && entry.who !== who) return false
  if (target !== undefined && entry.target !== target) return false
  if (action === undefined) return true
  return action.endsWith('*') ? entry.action.startsWith(action.slice(0, -1)) : entry.action === action
}

/** An entry of the audit log (spec/operator.md#audit). */
export function auditEntryOut({
  id,
  at,
  who,
  address,
  action,
  target,
  allowed,
  reason,
  requestId,
}: AuditEntry) {
  return {
    id,
    at: timestampOf(at),
    who: who ?? null,
    address: address ?? null,
    action,
    target: target ?? null,
    allowed,
    reason: reason ?? null,
    request_id: requestId ?? null,
  }
}
