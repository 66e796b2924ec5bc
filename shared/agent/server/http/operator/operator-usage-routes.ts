import { spendingBetween } from '@parley/engine/payments/ledger/spending'
import { paymentStates } from '@parley/engine/store/payment-store'
import { noUsage, type UsageCounts } from '@parley/engine/store/usage-days'
import { dayOf } from '@parley/engine/tasks/usage-rollup'
import { ownsFor, subjectOf } from '@parley/kit/auth/caller'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { time } from '@parley/wire/codecs/answers/fields'
import { day } from '@parley/wire/codecs/answers/operator/page'
import {
  agentPaymentList,
  agentUsage,
  paymentListQuery,
  usageQuery,
} from '@parley/wire/codecs/answers/operator/usage'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ledgerPaymentOut } from '@parley/wire/codecs/parley/payments'
import { ParleyError } from '@parley/wire/errors'
import { toWhole } from '@parley/wire/model/amount'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Services } from '../../methods/method.ts'
import { stateIn, stateOut } from '../ledger-state.ts'
import { byStatement } from './operator-access.ts'
import type { OperatorRoutes } from './operator-routes.ts'

const agentUsageQuery = usageQuery.pick({ since: true, until: true, owner: true }).extend({
  cursor: day.optional(),
})
const agentPaymentQuery = paymentListQuery.omit({ agent: true }).extend({
  until: time.optional().describe('Only payments that were created before this time'),
})

const usage: OperationDescription = {
  summary: 'Usage per day and owner',
  description: 'Each page contains whole days, the earliest first.',
  ...byStatement,
  query: agentUsageQuery,
  responses: { 200: { description: 'A page of usage', json: agentUsage } },
}
const payments: OperationDescription = {
  summary: 'List the payments of all owners, newest first',
  ...byStatement,
  query: agentPaymentQuery,
  responses: { 200: { description: 'A page of payments', json: agentPaymentList } },
}

const dayMs = 86_400_000
/** The number of days of one request, and the number of rows after which a page ends. */
const [daysMax, rowsMax] = [400, 2000]
/** The number of payments per state that are counted for one owner. */
const countedMax = 1000

/** Adds `/operator/usage` and `/operator/payments` (spec/operator.md#usage). */
export function addOperatorUsageRoutes(
  app: FastifyInstance,
  { services, operatorOf }: Pick<OperatorRoutes, 'services' | 'operatorOf'>,
): void {
  app.get('/operator/usage', { config: { api: usage } }, async (request) => {
    const operator = await operatorOf(request, 'usage.read')
    const query = parseParams(agentUsageQuery, request.query)
    const until = query.until ?? dayOf(Date.now())
    const since = query.cursor ?? query.since ?? dayOf(Date.parse(until) - 6 * dayMs)
    requirePeriod(since, until)
    return usageBetween(services, { from: since, to: until, owner: operator.owner ?? query.owner })
  })
  app.get('/operator/payments', { config: { api: payments } }, async (request) => {
    const operator = await operatorOf(request, 'payments.read')
    const given = parseParams(agentPaymentQuery, request.query)
    const { state, limit, cursor, until, owner = operator.owner } = given
    const states = state === undefined ? paymentStates : statesIn(state)
    const store = services.payments?.ledger.store
    const isVisible = operator.owner === undefined || operator.owner === owner
    if (store === undefined || !isVisible) return { payments: [], counts: {}, next_cursor: null }
    const after = cursor === undefined ? undefined : Number(cursor)
    const query = { states, owner, limit, until, cursor: after }
    const { items, nextCursor } = await store.listPayments(query)
    return {
      payments: items.map((payment) => {
        const owner = subjectOf(payment.owner)
        return ledgerPaymentOut({ ...payment, owner, state: stateOut(payment.state) })
      }),
      counts: await countsOf(store, owner),
      next_cursor: nextCursor === undefined ? null : String(nextCursor),
    }
  })
}

/** @throws ParleyError InvalidParams */
function statesIn(names: string) {
  return parseParams(z.object({ state: z.array(stateIn) }), { state: names.split(',') }).state
}

/** @throws ParleyError InvalidParams */
function requirePeriod(since: string, until: string): void {
  const days = (Date.parse(until) - Date.parse(since)) / dayMs
  if (days >= 0 && days < daysMax) return
  const message = `must be a day before until, and at most ${daysMax} days earlier`
  throw new ParleyError('InvalidParams', { data: { issues: [{ path: 'since', message }] } })
}

async function usageBetween(
  { store, usage: rollup, payments: paid }: Pick<Services, 'store' | 'usage' | 'payments'>,
  { from, to, owner }: { from: string; to: string; owner: string | undefined },
) {
  await rollup.flush()
  const spending = paid === undefined ? [] : await spendingBetween(paid.ledger.store, { from, to, owner })
  const rows: ReturnType<typeof rowOut>[] = []
  for (let ms = Date.parse(from); ms <= Date.parse(to); ms += dayMs) {
    const at = dayOf(ms)
    if (rows.length >= rowsMax) return { usage: rows, next_cursor: at }
    const counts = new Map<string, UsageCounts>()
    for (const row of await store.usage.listUsage(at))
      if (owner === undefined || ownsFor({ id: owner }, row.owner)) counts.set(row.owner, row)
    const spent = Map.groupBy(
      spending.filter((one) => one.day === at),
      (one) => one.owner,
    )
    for (const name of new Set([...counts.keys(), ...spent.keys()]))
      rows.push(rowOut(at, name, counts.get(name) ?? noUsage, spent.get(name) ?? []))
  }
  return { usage: rows, next_cursor: null }
}

function rowOut(
  at: string,
  owner: string,
  counts: UsageCounts,
  spent: Awaited<ReturnType<typeof spendingBetween>>,
) {
  return {
    day: at,
    owner,
    tasks: counts.tasks,
    completed: counts.completed,
    failed: counts.failed,
    worked_ms: Math.round(counts.workedMs),
    input_tokens: counts.inputTokens,
    output_tokens: counts.outputTokens,
    paid: spent.map(({ terms, atomic, sandbox }) => ({
      asset: terms.asset,
      asset_name: terms.extra.name,
      network: terms.network,
      amount: toWhole(atomic, terms.decimals),
      ...(sandbox && { sandbox: true as const }),
    })),
  }
}

/** The number of payments in each state. For one owner, at most 1,000 of each state are counted. */
async function countsOf(
  store: NonNullable<Services['payments']>['ledger']['store'],
  owner: string | undefined,
): Promise<Record<string, number>> {
  const byState =
    owner === undefined
      ? Object.entries(await store.countPaymentsByState())
      : await Promise.all(
          paymentStates.map(async (state) => {
            const { items } = await store.listPayments({ states: [state], owner, limit: countedMax })
            return [state, items.length] as const
          }),
        )
  return Object.fromEntries(
    byState.filter(([, count]) => count > 0).map(([state, count]) => [stateOut(state), count]),
  )
}
