import { z } from 'zod'
import { paymentAnswer } from '../payments.ts'
import { day, money, nextCursor, pageQuery, unreadAgents } from './page.ts'

/** The answers about usage and money of the operator API (spec/operator.md#usage). Agents return them without `agent`. */

const usage = {
  day,
  owner: z.string().describe('The client ID of the caller'),
  tasks: z.int().describe('Accepted tasks'),
  completed: z.int(),
  failed: z.int().describe('Failed, rejected and canceled tasks'),
  worked_ms: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  paid: z.array(money).describe('Settled payments that were not refunded'),
}

export const agentUsage = z.object({ usage: z.array(z.object(usage)), next_cursor: nextCursor })
export const usageRow = z
  .object({ ...usage, agent: z.string() })
  .partial({ agent: true, owner: true, day: true })

/** Days in UTC. Without `since`, the last 7 days. `by` sums over the fields that it does not name. */
export const usageQuery = z.object({
  since: day.optional(),
  until: day.optional(),
  agent: z.string().optional(),
  owner: z.string().optional(),
  by: z.string().default('day,agent,owner').describe('Fields, separated by commas: day, agent, owner'),
})
export const usageAnswer = z.object({ usage: z.array(usageRow), unread: unreadAgents })

/** `GET /operator/payments`: the ledgers of all agents. `orphaned` payments will be refunded by a person. */
export const paymentListQuery = z.object({
  limit: pageQuery.limit,
  cursor: pageQuery.cursor,
  agent: z.string().optional(),
  owner: z.string().optional(),
  state: z.string().optional(),
})
export const agentPaymentList = z.object({
  payments: z.array(paymentAnswer),
  counts: z.record(z.string(), z.int()),
  next_cursor: nextCursor,
})
export const paymentList = z.object({
  payments: z.array(paymentAnswer.extend({ agent: z.string() })),
  counts: z.record(z.string(), z.int()),
  next_cursor: nextCursor,
  unread: unreadAgents,
})
