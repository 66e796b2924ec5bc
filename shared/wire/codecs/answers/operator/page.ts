import { z } from 'zod'
import { time } from '../fields.ts'

/** Parts of several answers of the operator API (spec/operator.md#lists). */

/** Agents without entries in the answer, because they could not be read. */
export const unreadAgents = z
  .array(
    z.object({
      agent: z.string(),
      reason: z.string().describe('A sentence that says why and what to do next'),
    }),
  )
  .describe('Agents that could not be read. Their entries are missing from this answer')

export const nextCursor = z
  .string()
  .nullable()
  .describe('The cursor of the next page, or null on the last page')

/** The query of a list: newest first, within a period. */
export const pageQuery = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(4096).optional(),
  since: time.optional().describe('Only entries at or after this time'),
  until: time.optional().describe('Only entries before this time'),
}

/** A day in UTC, such as 2026-11-22. */
export const day = z.iso.date()

/** An amount per asset and network, in whole units as decimal strings. */
export const money = z.object({
  asset: z.string(),
  asset_name: z.string(),
  network: z.string(),
  amount: z.string(),
  sandbox: z.literal(true).optional(),
})
