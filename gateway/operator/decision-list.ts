import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Cursors } from '@parley/kit/database/cursor'
import type { decisionListQuery } from '@parley/wire/codecs/answers/operator/records'
import { z } from 'zod'
import { decisionsKeptMs } from '../routing/negotiation/decisions.ts'
import type { ListedDecision, RoutingStore } from '../routing/store/routing-store.ts'
import { decisionRowOut, summaryIn } from './decision-view.ts'
import { type CallerView, showsTexts } from './view.ts'

type Filters = z.output<typeof decisionListQuery>

/** Number of decisions that a search reads together, so that it does not block other requests. */
const searchBatch = 100
/** Number of decisions that one page examines. A search continues with the cursor. */
const scanMax = 2000

const position = z.object({ until: z.number(), skip: z.number() })

export interface DecisionListOptions {
  store: Pick<RoutingStore, 'listDecisions'>
  cursors: Cursors
}

/**
 * Returns a page of the decisions that the caller may see. A page ends when it is full or has examined 2,000 decisions, so that it
 * may be short or empty although `next_cursor` continues.
 * @throws ParleyError InvalidParams for a cursor of another list
 */
export async function listDecisions(
  { store, cursors }: DecisionListOptions,
  view: CallerView,
  { cursor, limit, ...filters }: Filters,
) {
  const list = `decisions ${JSON.stringify(filters)}`
  const since = Math.max(Date.now() - decisionsKeptMs, filters.since ? Date.parse(filters.since) : 0)
  let at = cursor === undefined ? firstOf(filters) : position.parse(cursors.open(list, view.caller, cursor))
  const owner = view.owner ?? filters.owner
  const isVisible = view.owner === undefined || filters.owner === undefined || filters.owner === view.owner
  const { agent, outcome, q } = filters
  const isSearch = agent !== undefined || outcome !== undefined || q !== undefined
  // One more than the page shows whether it is the last.
  const batchSize = isSearch ? searchBatch : limit + 1
  const decisions: ReturnType<typeof decisionRowOut>[] = []
  let isLast = !isVisible
  for (let examined = 0; !isLast && decisions.length < limit && examined < scanMax; ) {
    if (examined > 0) await nextTurn()
    const found = await store.listDecisions({ owner, task: filters.task, since, ...at, limit: batchSize })
    isLast = found.length < batchSize
    for (const [number, decision] of found.entries()) {
      at = after(at, decision)
      examined += 1
      const texts = showsTexts(view, decision.owner ?? null)
      if (matches(decision, filters, texts)) decisions.push(decisionRowOut(decision, texts))
      if (decisions.length < limit) continue
      isLast = isLast && number === found.length - 1
      break
    }
  }
  return { decisions, next_cursor: isLast ? null : cursors.seal(list, view.caller, at) }
}

function firstOf({ until }: Pick<Filters, 'until'>) {
  // The bound of the store is inclusive.
  return { until: until === undefined ? Number.MAX_SAFE_INTEGER : Math.ceil(Date.parse(until)) - 1, skip: 0 }
}

function after({ until, skip }: z.output<typeof position>, { at }: ListedDecision) {
  return at === until ? { until, skip: skip + 1 } : { until: at, skip: 1 }
}

function matches(
  decision: ListedDecision,
  { agent, outcome, q }: Pick<Filters, 'agent' | 'outcome' | 'q'>,
  texts: boolean,
): boolean {
  if (agent === undefined && outcome === undefined && q === undefined) return true
  const summary = summaryIn(decision)
  if (agent !== undefined && summary.chosen !== agent) return false
  if (outcome !== undefined && summary.outcome !== outcome) return false
  if (q === undefined) return true
  const text = texts ? (summary.text ?? '').toLowerCase() : ''
  const found = `${decision.id} ${decision.task ?? ''} ${summary.words} ${text}`
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => found.includes(word))
}
