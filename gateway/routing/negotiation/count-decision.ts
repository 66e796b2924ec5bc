import type { RoutingSeries } from '../../records/routing-series.ts'
import type { DecisionRecord } from '../store/routing-store.ts'
import type { Decision } from './negotiator.ts'

const names = { accepted: 'accepted', rejected: 'rejected', none: 'none', answered: 'negotiated' } as const

/** Counts a decision in the gateway_* series. */
export function countDecision(
  series: RoutingSeries,
  { summary }: Pick<DecisionRecord, 'summary'>,
  { answer, tried }: Pick<Decision, 'answer' | 'tried'>,
): void {
  if (summary === undefined) return
  const { chosen = '', outcome, score } = summary
  series.add(chosen, names[outcome])
  if (outcome === 'answered') return
  for (const { agent, outcome: why } of tried)
    if (why !== 'answered' && why !== 'unknown') series.add(agent, 'failovers')
  if (score !== undefined) series.score(score)
  const amount = answer.candidates.find(({ agent }) => agent.slug === chosen)?.answer.estimatedCostAmount
  if (amount !== undefined) series.add(chosen, 'cost', Number(amount))
}
