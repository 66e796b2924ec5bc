import type { Negotiated } from './negotiate.ts'

/** The response of `POST /agent/negotiation` (spec/negotiation.md#response). */
export function negotiationOut(result: Negotiated) {
  const { subscores } = result
  return {
    can_handle: result.canHandle,
    score: result.score,
    confidence: result.confidence,
    rejection_reason: result.rejectionReason,
    reasons: result.reasons,
    subscores: {
      skill_match: subscores.skillMatch,
      io_compatibility: subscores.ioCompatibility,
      performance: subscores.performance,
      load: subscores.load,
      cost: subscores.cost,
    },
    skill_matches: result.skillMatches.map(({ skillId, skillName, score, reasons }) => ({
      skill_id: skillId,
      skill_name: skillName,
      score,
      reasons,
    })),
    queue_depth: result.queueDepth,
    estimated_latency_ms: result.estimatedLatencyMs,
    estimated_cost_amount: result.estimatedCostAmount,
  }
}
