import { z } from 'zod'
import { jsonObject, time } from '../fields.ts'
import { routingRecordAnswer } from '../negotiation.ts'
import { nextCursor, pageQuery } from './page.ts'

/** The answers of the operator API about what the gateway recorded (spec/operator.md#decisions, #audit, #history). */

const outcome = z
  .enum(['accepted', 'rejected', 'none', 'answered'])
  .describe('`answered`: a negotiation request without a message; `none`: no agent was good enough')

const verdict = z.object({
  verdict: z.enum(['right', 'wrong']),
  right_agent: z.string().nullable(),
  comment: z.string().nullable(),
  by: z.string(),
  at: time,
})

/** A decision in a list. */
export const decisionRow = z
  .object({
    id: z.string(),
    at: time,
    owner: z.string().nullable(),
    method: z.string(),
    outcome,
    chosen: z.string().nullable(),
    score: z.number().nullable(),
    runner_up: z.object({ agent: z.string(), score: z.number() }).nullable(),
    candidates_total: z.int(),
    excluded_total: z.int(),
    task_id: z.string().nullable(),
    trace_id: z.string().nullable(),
    text: z.string().max(300).nullable().describe('The beginning of the text; null if texts are not shown'),
    verdicts: z.int(),
  })
  .meta({ id: 'DecisionRow' })

export const decisionListQuery = z.object({
  ...pageQuery,
  agent: z.string().optional().describe('The slug of the chosen agent'),
  owner: z.string().optional(),
  outcome: outcome.optional(),
  task: z.string().optional(),
  q: z.string().max(200).optional().describe('Words in the reasons, the agents’ names or the shown text'),
})
export const decisionList = z.object({ decisions: z.array(decisionRow), next_cursor: nextCursor })

/** `GET /operator/decisions/{id}`. `asked` contains the text only if texts are shown. */
export const decisionDetail = z.object({
  ...decisionRow.shape,
  record: routingRecordAnswer,
  weights: jsonObject.nullable(),
  feedback: z.array(verdict),
})

/** `POST /operator/decisions/{id}/feedback`. */
export const verdictIn = z.object({
  verdict: z.enum(['right', 'wrong']),
  right_agent: z
    .string()
    .max(200)
    .optional()
    .describe('The slug of the agent that would have been right, with the verdict `wrong`'),
  comment: z.string().max(2000).optional(),
})

/** The decision after a verdict, and whether the gateway learned from the verdict. */
export const verdictAnswer = z.object({
  ...decisionDetail.shape,
  learned: z.boolean(),
  not_learned: z
    .enum(['learning_off', 'no_words', 'no_agent'])
    .nullable()
    .describe(
      '`learning_off`: ROUTE_LEARNING is no; `no_words`: no words of the message are stored; `no_agent`: no registered agent is concerned',
    ),
})

const learnedWord = z.object({
  word: z.string(),
  weight: z.number().describe('Positive examples with the word less negative ones, weighted by outcome'),
})
const outcomeCounts = { examples: z.int(), positive: z.int(), negative: z.int() }

/** `GET /operator/agents/{id}/learned`: the sums of the training examples of an agent. */
export const learnedAnswer = z
  .object({
    agent: z.string(),
    learning: z.boolean().describe('False with ROUTE_LEARNING=no: the examples then have no effect'),
    ...outcomeCounts,
    since: time.nullable().describe('The time of the oldest example'),
    raises_score: z.boolean().describe('Negative examples lower the score under the same conditions'),
    missing: z
      .object({ examples: z.int(), callers: z.int() })
      .describe('Positive examples, and callers with positive examples, until the score is raised'),
    callers_total: z.int(),
    callers: z
      .array(z.object({ caller: z.string(), ...outcomeCounts, since: time }))
      .describe('Callers with the most examples first, at most 20. `caller` begins a hash of the client ID'),
    words: z
      .object({ positive: z.array(learnedWord), negative: z.array(learnedWord) })
      .nullable()
      .describe('The most significant words first; null if texts are not shown'),
  })
  .meta({ id: 'LearnedAgent' })

/** `DELETE /operator/agents/{id}/learned`. */
export const forgetQuery = z.object({
  caller: z
    .string()
    .regex(/^[\w-]{4,22}$/, 'the beginning of the hash of a caller, at least 4 characters')
    .optional()
    .describe('Only the examples of this caller: the beginning of its hash, as listed'),
})
export const forgottenAnswer = z.object({ agent: z.string(), forgotten: z.int() })

export const auditRow = z
  .object({
    id: z.string(),
    at: time,
    who: z.string().nullable(),
    address: z.string().nullable(),
    action: z.string(),
    target: z.string().nullable(),
    allowed: z.boolean(),
    reason: z.string().nullable(),
    request_id: z.string().nullable(),
  })
  .meta({ id: 'AuditRow' })

export const auditQuery = z.object({
  ...pageQuery,
  who: z.string().optional(),
  action: z.string().optional().describe('An action, or its beginning with * at the end, such as oauth.*'),
  target: z.string().optional(),
  allowed: z.stringbool().optional(),
})
export const auditList = z.object({ entries: z.array(auditRow), next_cursor: nextCursor })

/** A change of an agent's health or admission. */
export const historyRow = z.object({
  at: time,
  kind: z.enum([
    'registered',
    'admitted',
    'dismissed',
    'ready',
    'unreachable',
    'left',
    'ejected',
    'reinstated',
    'quarantined',
    'released',
    'card_changed',
    'examples_tried',
  ]),
  reason: z.string().nullable(),
  by: z.string().nullable(),
})
/** `GET /operator/agents/{id}/history`: newest first. */
export const historyQuery = z.object({ limit: pageQuery.limit, cursor: pageQuery.cursor })
export const historyAnswer = z.object({ history: z.array(historyRow), next_cursor: nextCursor })

/** The calls between parties in the last minutes, for the overview. `from` is `callers` for clients that are no agents. */
export const callsAnswer = z.object({
  window_minutes: z.int(),
  calls: z.array(
    z.object({
      from: z.string(),
      to: z.string(),
      count: z.int(),
      errors: z.int(),
      p50_ms: z.number().nullable(),
    }),
  ),
})
