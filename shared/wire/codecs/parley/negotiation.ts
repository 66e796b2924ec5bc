import { z } from 'zod'
import type {
  Candidate,
  GatewayNegotiation,
  Need,
  NegotiationAnswer,
  NegotiationQuery,
  RoutingRecord,
  Weights,
} from '../../model/negotiation.ts'
import type { JsonObject, JsonValue } from '../../model/task.ts'
import { wireObject } from './spelling.ts'

/** The request's field names as they appear in text for people. */
export const queryFields = {
  minScore: 'min_score',
  maxCostAmount: 'max_cost_amount',
  maxLatencyMs: 'max_latency_ms',
} as const satisfies Partial<Record<keyof NegotiationQuery, string>>

export function queryOut(query: NegotiationQuery): JsonObject {
  return defined({
    task_summary: query.taskSummary,
    weights: query.weights && weightsOut(query.weights),
    limit: query.limit,
    task_details: query.taskDetails,
    input_mime_types: query.inputMimeTypes,
    output_mime_types: query.outputMimeTypes,
    max_latency_ms: query.maxLatencyMs,
    max_cost_amount: query.maxCostAmount,
    required_tools: query.requiredTools,
    forbidden_tools: query.forbiddenTools,
    min_score: query.minScore,
  })
}

export function weightsOut(weights: Weights) {
  return {
    skill_match: weights.skillMatch,
    io_compatibility: weights.ioCompatibility,
    performance: weights.performance,
    load: weights.load,
    cost: weights.cost,
  }
}

/** Writes one agent's answer (spec/negotiation.md#response). */
export function answerOut(answer: NegotiationAnswer): JsonObject {
  return defined({
    can_handle: answer.canHandle,
    score: answer.score,
    confidence: answer.confidence,
    rejection_reason: answer.rejectionReason,
    reasons: answer.reasons,
    subscores: weightsOut(answer.subscores),
    skill_matches: answer.skillMatches.map(({ skillId, skillName, score, reasons }) => ({
      skill_id: skillId,
      skill_name: skillName,
      score,
      reasons,
    })),
    queue_depth: answer.queueDepth,
    estimated_latency_ms: answer.estimatedLatencyMs,
    estimated_cost_amount: answer.estimatedCostAmount,
  })
}

const noCandidate: NegotiationAnswer = {
  canHandle: false,
  score: 0,
  confidence: 1,
  rejectionReason: 'no agent is a candidate',
  reasons: ['no agent is a candidate'],
  subscores: { skillMatch: 0, ioCompatibility: 0, performance: 0, load: 0, cost: 0 },
  skillMatches: [],
  queueDepth: 0,
}

/** Writes a gateway's answer: the best agent's answer, with all candidates (spec/negotiation.md#gateway). */
export function gatewayAnswerOut(answer: GatewayNegotiation): JsonObject {
  const { best, needs } = answer
  return {
    ...(best === undefined ? answerOut(noCandidate) : candidateOut(best, needs)),
    agent: best === undefined ? null : { ...best.agent },
    candidates: answer.candidates.map((candidate) => candidateOut(candidate, needs)),
    candidates_total: answer.candidatesTotal,
    excluded: answer.excluded.map((one) => ({ ...one })),
    excluded_total: answer.excludedTotal,
    ...(needs !== undefined && { needs: needs.map((need) => ({ ...need })) }),
    negotiation_id: answer.id,
  }
}

function candidateOut({ agent, answer }: Candidate, needs: readonly Need[] = []): JsonObject {
  const served = needs.flatMap((need) => (need.agent === agent.slug ? servesPart(need) : []))
  return { agent: { ...agent }, ...answerOut({ ...answer, reasons: [...answer.reasons, ...served] }) }
}

const quotedMaxChars = 80

/** Stored records have no text of the request. */
function servesPart({ text }: Need): string[] {
  if (text === undefined) return []
  const line = text.replace(/\s+/gu, ' ')
  const short = line.length > quotedMaxChars ? `${line.slice(0, quotedMaxChars - 1).toWellFormed()}…` : line
  return [`serves the part "${short}"`]
}

export function routingRecordOut(answer: GatewayNegotiation, record: RoutingRecord): JsonObject {
  return {
    ...gatewayAnswerOut(answer),
    method: record.method,
    decided_at: record.decidedAt,
    chosen: record.chosen,
    tried: record.tried,
    asked: queryOut(record.asked),
  }
}

/** The part of `error.data` that explains why no agent can do the task. */
export function noAgentData(answer: GatewayNegotiation): JsonObject {
  const { id, candidates, excluded, excludedTotal, needs } = answer
  return {
    negotiation_id: id,
    candidates: candidates.map((candidate) => candidateOut(candidate, needs)),
    excluded: excluded.map((one) => ({ ...one })),
    excluded_total: excludedTotal,
    ...(needs !== undefined && { needs: needs.map((need) => ({ ...need })) }),
  }
}

/** The part of `error.data` that names the key with which the caller may send the message again. */
export function idempotencyKeyOut(key: string): JsonObject {
  return { idempotency_key: key }
}

const text = z.string().optional().catch(undefined)
const number = z.number().optional().catch(undefined)
const candidate = {
  agent: z.object({ slug: text }).nullish().catch(undefined),
  canHandle: z.boolean().optional().catch(undefined),
  score: number,
  subscores: wireObject({
    skillMatch: number,
    ioCompatibility: number,
    performance: number,
    load: number,
    cost: number,
  })
    .optional()
    .catch(undefined),
  reasons: z.array(z.string()).optional().catch(undefined),
  rejectionReason: text,
}
const gatewayAnswer = wireObject({
  ...candidate,
  candidates: z.array(wireObject(candidate)).optional().catch(undefined),
  excluded: z
    .array(z.object({ agent: text, rule: text }))
    .optional()
    .catch(undefined),
  excludedTotal: number,
  needs: z
    .array(z.object({ position: number, text, agent: z.string().nullish().catch(undefined), score: number }))
    .optional()
    .catch(undefined),
})

export type ReadCandidate = z.output<ReturnType<typeof wireObject<typeof candidate>>>
export type ReadNegotiation = z.output<typeof gatewayAnswer>

/** Reads a gateway's answer or routing record, for clients. Fields of any other type count as absent. */
export function readNegotiation(json: unknown): ReadNegotiation {
  return gatewayAnswer.safeParse(json).data ?? {}
}

function defined(fields: Record<string, JsonValue | undefined>): JsonObject {
  const out: JsonObject = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) out[name] = value
  return out
}
