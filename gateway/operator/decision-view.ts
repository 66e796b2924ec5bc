import { defaultWeights } from '@parley/negotiation/score/weights'
import { routingRecordAnswer } from '@parley/wire/codecs/answers/negotiation'
import { weightsOut } from '@parley/wire/codecs/parley/negotiation'
import { timestampOf } from '@parley/wire/model/timestamp'
import { z } from 'zod'
import type {
  DecisionRecord,
  DecisionSummary,
  ListedDecision,
  Verdict,
} from '../routing/store/routing-store.ts'

/** The fields of an earlier version's record from which its summary is made. */
const recordBody = z.object({
  method: z.string().catch(''),
  chosen: z.string().nullable().catch(null),
  candidates: z
    .array(
      z.object({ agent: z.object({ slug: z.string() }), score: z.number(), reasons: z.array(z.string()) }),
    )
    .catch([]),
  candidates_total: z.number().catch(0),
  excluded_total: z.number().catch(0),
  tried: z.array(z.unknown()).catch([]),
})

/** The summary of a decision, made from its body if an earlier version wrote the record. */
export function summaryIn({ summary, body }: Pick<ListedDecision, 'summary' | 'body'>): DecisionSummary {
  if (summary !== undefined) return summary
  const record = recordBody.parse(body ?? {})
  const { method, chosen, candidates } = record
  const won = candidates.find(({ agent }) => agent.slug === chosen)
  const refused = record.tried.length > 0 ? 'rejected' : 'none'
  return {
    method,
    outcome: method === 'agent/negotiation' ? 'answered' : chosen === null ? refused : 'accepted',
    ...(chosen !== null && { chosen }),
    ...(won !== undefined && { score: won.score }),
    candidatesTotal: record.candidates_total,
    excludedTotal: record.excluded_total,
    words: candidates
      .slice(0, 3)
      .flatMap(({ agent, reasons }) => [agent.slug, ...reasons])
      .join(' ')
      .toLowerCase(),
  }
}

/** A row of the list (spec/operator.md#decisions). */
export function decisionRowOut(decision: ListedDecision, texts: boolean) {
  const { id, at, owner = null, task = null, verdicts = [] } = decision
  const summary = summaryIn(decision)
  return {
    id,
    at: timeOut(at),
    owner,
    method: summary.method,
    outcome: summary.outcome,
    chosen: summary.chosen ?? null,
    score: summary.score ?? null,
    runner_up: summary.runnerUp ?? null,
    candidates_total: summary.candidatesTotal,
    excluded_total: summary.excludedTotal,
    task_id: task,
    trace_id: summary.traceId ?? null,
    text: texts ? (summary.text ?? null) : null,
    verdicts: verdicts.length,
  }
}

/** A whole decision. The request contains the beginning of the text if texts are shown. */
export function decisionDetailOut(decision: DecisionRecord, texts: boolean) {
  const row = decisionRowOut(decision, texts)
  const record = routingRecordAnswer.parse(decision.body)
  const { asked } = record
  const { weights = weightsOut(defaultWeights) } = asked
  return {
    ...row,
    record: { ...record, asked: row.text === null ? asked : { ...asked, task_summary: row.text } },
    weights,
    feedback: (decision.verdicts ?? []).map(verdictOut),
  }
}

function verdictOut({ verdict, rightAgent, comment, by, at }: Verdict) {
  return { verdict, right_agent: rightAgent ?? null, comment: comment ?? null, by, at: timeOut(at) }
}

const timeOut = (ms: number) => timestampOf(ms * 1000)
