import { z } from 'zod'
import { jsonObject, time } from './fields.ts'

/** The answers of negotiation (spec/negotiation.md#response). */

const share = z.number().min(0).max(1)

const answer = {
  can_handle: z.boolean(),
  score: share,
  confidence: share,
  rejection_reason: z.string().optional(),
  reasons: z.array(z.string()),
  subscores: z.object({
    skill_match: share,
    io_compatibility: share,
    performance: share,
    load: share,
    cost: share,
  }),
  skill_matches: z.array(
    z.object({ skill_id: z.string(), skill_name: z.string(), score: share, reasons: z.array(z.string()) }),
  ),
  queue_depth: z.int(),
  estimated_latency_ms: z.number().optional(),
  estimated_cost_amount: z.string().optional(),
}

/** The answer of one agent. */
export const agentAnswer = z.object(answer).meta({ id: 'NegotiationAnswer' })

const agent = z.object({ slug: z.string(), name: z.string(), did: z.string().nullable(), url: z.string() })

/** A part of the request. A record has no text of it. */
const need = z.object({
  position: z.int().min(1),
  text: z.string().optional(),
  agent: z.string().nullable(),
  score: share,
})

const gatewayFields = {
  ...answer,
  agent: agent.nullable(),
  candidates: z.array(z.object({ agent, ...answer })),
  candidates_total: z.int(),
  excluded: z.array(z.object({ agent: z.string(), rule: z.string(), temporary: z.literal(true).optional() })),
  excluded_total: z.int(),
  needs: z.array(need).optional(),
  negotiation_id: z.string(),
}

/** The answer of a gateway, over all agents. */
export const gatewayAnswer = z.object(gatewayFields)

/** The record of a decision. */
export const routingRecordAnswer = z.object({
  ...gatewayFields,
  method: z.string(),
  decided_at: time,
  chosen: z.string().nullable(),
  tried: z.array(z.object({ agent: z.string(), outcome: z.string() })),
  asked: jsonObject,
})
