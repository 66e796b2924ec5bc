import { z } from 'zod'
import { time } from '../fields.ts'
import { nextCursor, pageQuery, unreadAgents } from './page.ts'
import { webhookSummary } from './tasks.ts'

/** The answers about webhooks of the operator API (spec/operator.md#deliveries). Agents return them without `agent`. */

const delivery = {
  ...webhookSummary.shape,
  task_id: z.string(),
  owner: z.string(),
  set_at: time,
}

export const agentDeliveryRow = z.object(delivery)
export const deliveryRow = z.object({ ...delivery, agent: z.string() }).meta({ id: 'Delivery' })

export const deliveryListQuery = z.object({
  ...pageQuery,
  agent: z.string().optional(),
  owner: z.string().optional(),
  task: z.string().optional(),
  state: z.enum(['delivered', 'pending', 'failing', 'dropped']).optional(),
})

export const agentDeliveryList = z.object({ deliveries: z.array(agentDeliveryRow), next_cursor: nextCursor })
export const deliveryList = z.object({
  deliveries: z.array(deliveryRow),
  next_cursor: nextCursor,
  unread: unreadAgents,
})

/** One attempt to deliver one event. */
export const attempt = z.object({
  at: time,
  sequence: z.int(),
  duration_ms: z.int(),
  status: z.int().nullable(),
  error: z.string().nullable().describe('Why the attempt failed; null if the receiver accepted the event'),
  next_attempt_at: time.nullable(),
})

/** `GET /operator/deliveries/{agent}/{task}/{config}`. */
export const deliveryDetail = z.object({
  ...delivery,
  agent: z.string(),
  tries: z.array(attempt).describe('The newest attempts, newest first (bounded)'),
  bodies: z
    .array(z.object({ sequence: z.int(), settled: z.boolean(), body: z.unknown() }))
    .describe('The events as they are sent; empty if texts are not shown'),
})
export const agentDeliveryDetail = deliveryDetail.omit({ agent: true })

/** `POST /operator/deliveries/{agent}/{task}/{config}/resend`: from `sequence` on, by default the dropped events or the last one. */
export const resendIn = z.object({ sequence: z.int().min(1).optional() })
/** `POST /operator/deliveries/resend`: the events of every config that were dropped since a time. */
export const resendSinceIn = z.object({
  agent: z.string().optional(),
  owner: z.string().optional(),
  since: time,
  until: time.optional(),
})
export const resendAnswer = z.object({
  configs: z.int(),
  events: z.int(),
  more: z
    .boolean()
    .optional()
    .describe('Whether more webhooks have dropped events; repeat the request for them'),
  unread: unreadAgents.optional(),
})
