import { z } from 'zod'
import { time } from '../fields.ts'
import { callsAnswer } from './records.ts'

/** The overview, and what the console reads about itself (spec/operator.md#overview, #console). */

export const agentLoad = z.object({
  agent: z.string(),
  name: z.string(),
  status: z.enum(['starting', 'ready', 'unreachable']),
  admitted: z.boolean(),
  quarantined: z.boolean(),
  external: z.boolean(),
  supervised: z.boolean(),
  queue_depth: z.number().nullable(),
  active_tasks: z.number().nullable(),
  latency_p50_ms: z.number().nullable(),
  latency_p95_ms: z.number().nullable(),
  success_share: z.number().nullable(),
})

/** Something that needs a person, with the path of the console where it can be handled. */
export const attention = z.object({
  kind: z.enum([
    'agent_unreachable',
    'agent_quarantined',
    'agent_not_admitted',
    'agent_not_started',
    'agent_not_configured',
    'card_changed',
    'task_waiting',
    'delivery_failing',
    'payment_orphaned',
    'payment_unknown',
    'queue_long',
  ]),
  text: z.string().describe('A sentence that says what happened and what to do next'),
  agent: z.string().nullable(),
  since: time.nullable(),
  count: z.int(),
  path: z.string().describe('The path of the console, such as /console/tasks?waiting=true'),
  command: z.string().describe('The CLI command that shows the same'),
})

export const overviewAnswer = z.object({
  agents: z.array(agentLoad).describe('At most 200 agents, those with problems and load first'),
  agents_total: z.int(),
  tasks: z.record(z.string(), z.int()).describe('Unfinished tasks, by state'),
  ...callsAnswer.shape,
  attention: z.array(attention),
})

/** `GET /console/session`. */
export const sessionAnswer = z.object({
  name: z.string(),
  role: z.enum(['caller', 'operator']),
  client_id: z.string().describe('The client for which the session acts; the owner of its tasks'),
  shows_texts: z.boolean(),
  csrf: z.string().describe('The value of the header x-csrf-token of every request that changes something'),
  expires_at: time,
  gateway: z.object({
    url: z.string(),
    version: z.string(),
    did: z.string().nullable(),
    production: z.boolean(),
  }),
})

/** People who may sign in (`parley operators`). */
export const accountAnswer = z.object({
  name: z.string(),
  role: z.enum(['caller', 'operator']),
  client_id: z.string(),
  created_at: time,
  last_sign_in: time.nullable(),
  disabled: z.boolean(),
})
export const accountListAnswer = z.object({ accounts: z.array(accountAnswer) })
export const accountIn = z.object({
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/),
  role: z.enum(['caller', 'operator']),
  client_id: z.string().max(512).optional(),
})
/** The password is generated and shown once. */
export const createdAccountAnswer = accountAnswer.extend({ password: z.string() })

export const consoleSessionAnswer = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(['caller', 'operator']),
  created_at: time,
  last_seen: time,
  address: z.string().nullable(),
  user_agent: z.string().nullable(),
  current: z.boolean(),
})
export const consoleSessionListAnswer = z.object({ sessions: z.array(consoleSessionAnswer) })
