import { z } from 'zod'
import { jsonValue, time } from './fields.ts'

/** The answers of the registry (spec/gateway-registry.md#list). */

const relay = z.object({
  dialect: z.string(),
  version: z.string().nullable(),
  streaming: z.boolean(),
  security: z.array(z.string()),
  card_signature: z.object({
    verified: z.boolean(),
    kid: z.string().optional(),
    reason: z.string().optional(),
  }),
})

const summary = {
  slug: z.string(),
  id: z.string(),
  name: z.string(),
  description: z.string(),
  did: z.string().nullable(),
  url: z.string().describe('The address of the agent at the gateway'),
  status: z.enum(['starting', 'ready', 'unreachable']),
  verified: z.boolean(),
  admitted: z.boolean(),
  origin: z.enum(['supervised', 'registered']),
  external: z.boolean(),
  quarantined: z.boolean(),
  since: time,
  last_seen: time.nullable(),
  left: time.optional(),
  skills: z.array(z.object({ id: z.string(), name: z.string(), tags: z.array(z.string()) })),
  relay: relay.optional(),
}

const proof = z.string().nullable().describe('A JWS of the gateway; null without an identity')

export const entryListAnswer = z.object({
  agents: z.array(z.object({ ...summary, proof }).meta({ id: 'AgentSummary' })),
  total: z.int(),
  next_cursor: z.string().nullable(),
})

const figure = z.number().nullable()
const load = z.object({
  queue_depth: figure,
  active_tasks: figure,
  latency_p50_ms: figure,
  latency_p95_ms: figure,
  completed: figure,
  failed: figure,
})

const details = {
  ...summary,
  registered_at: time,
  revision: z.string(),
  admitted_revision: z.string().nullable().describe('The revision that an operator admitted'),
  admitted_at: time.nullable(),
  keys: z.array(z.string()),
  token_resource: z.string(),
  card_changes: z.array(z.object({ at: time, field: z.string(), before: jsonValue, after: jsonValue })),
  quarantine: z
    .object({
      since: time,
      reason: z.string(),
      by: z.enum(['gateway', 'operator']),
      until: time.nullable(),
    })
    .nullable(),
  lease_until: time,
  load,
  replicas: z.array(z.object({ id: z.string(), last_seen: time, lease_until: time, load })),
  measurements: z
    .object({
      samples: z.number(),
      completed_tasks: z.number(),
      success_share: z.number(),
      latency_p50_ms: figure,
      latency_p95_ms: figure,
    })
    .nullable(),
  example_probe: z
    .object({
      revision: z.string().describe('The revision that was probed'),
      at: time,
      completed: z.int(),
      failed: z.int(),
      needed_input: z.int(),
      needed_auth: z.int(),
      needed_payment: z.int(),
      timed_out: z.int(),
    })
    .optional()
    .describe('What became of the examples of the agent when the gateway sent them; absent if it has not'),
  skills: z.array(z.looseObject({ id: z.string(), name: z.string(), description: z.string() })),
  card: z.looseObject({}),
  proof,
}

export const entryAnswer = z.object(details).meta({ id: 'Agent' })

const lookAlike = z.object({ agent: z.string(), because: z.enum(['name', 'card']) })

/** The answer to the operator's changes of an agent. */
export const changedEntryAnswer = z.object({ ...details, look_alikes: z.array(lookAlike).optional() })

export const leaseAnswer = z.object({ ...summary, lease_seconds: z.number() })

export const leftAnswer = z.object({ success: z.literal(true), id: z.string(), slug: z.string() })

export const successAnswer = z.object({ success: z.literal(true) })
