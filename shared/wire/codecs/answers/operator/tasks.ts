import { z } from 'zod'
import { jsonObject, time } from '../fields.ts'
import { money, nextCursor, pageQuery, unreadAgents } from './page.ts'

/** The answers about tasks of the operator API (spec/operator.md#tasks). Agents return the same forms without `agent`. */

/** The states of A2A in Parley's spelling; `resting` is no state. */
const state = z.string().describe('The state of the task, such as working')

const party = z.object({ subject: z.string(), delegate: z.string(), agents: z.array(z.string()) })

/** A task at another agent. `task_id` is absent while it is not known. */
const link = z.object({
  agent: z.string().optional().describe('The slug of the agent, or its name at the calling agent'),
  task_id: z.string().optional(),
  ended: z.boolean().optional(),
  detached: z.literal(true).optional(),
})

const row = {
  task_id: z.string(),
  context_id: z.string(),
  owner: z.string().describe('The client ID of the owner'),
  delegation: party.optional(),
  state,
  created_at: time,
  updated_at: time,
  since: time.describe('When the task entered its state'),
  started_at: time.nullable().describe('When a handler was first started'),
  starts: z.int().describe('The number of starts of a handler for the newest message'),
  worked_ms: z.int(),
  deadline_at: time.nullable(),
  skill: z.string().nullable(),
  text: z
    .string()
    .max(300)
    .nullable()
    .describe('The beginning of the first message; null if the setting does not show texts'),
  reason: z.string().nullable().describe('The text of the current status, such as a question or an error'),
  parent: link.nullable().describe('The task whose handler sent the message'),
  trace_id: z.string().nullable(),
  payment: money.nullable().optional().describe('What a task in payment-required costs'),
  expires_at: time.nullable().optional().describe('When the pause of the task ends'),
}

/** A task as its agent lists it. */
export const agentTaskRow = z.object(row)
/** A task as the gateway lists it. `recorded_only` marks a task of an external agent, of which only the route is known. */
export const taskRow = z
  .object({ ...row, agent: z.string(), recorded_only: z.literal(true).optional() })
  .meta({ id: 'OperatorTask' })

export const taskListQuery = z.object({
  ...pageQuery,
  agent: z.string().optional().describe('The slug of an agent'),
  owner: z.string().optional().describe('The client ID of an owner'),
  state: z.string().optional().describe('States, separated by commas'),
  waiting: z.stringbool().optional().describe('Only tasks that wait for a person or a payment'),
  context: z.string().optional(),
})

export const agentTaskList = z.object({ tasks: z.array(agentTaskRow), next_cursor: nextCursor })
export const taskList = z.object({ tasks: z.array(taskRow), next_cursor: nextCursor, unread: unreadAgents })

/** An event of a task: what happened and when. Texts and artifacts are absent if the setting does not show them. */
const event = z.object({
  sequence: z.int(),
  at: time,
  kind: z.enum(['status-update', 'artifact-update']),
  state: state.optional(),
  text: z.string().nullable().optional(),
  artifact_id: z.string().optional(),
})

/** One start of a handler. */
const run = z.object({
  started_at: time,
  ended_at: time.nullable(),
  outcome: z
    .string()
    .nullable()
    .describe('The state that followed; `lost` if the process ended, `released` if it stopped'),
})

export const webhookSummary = z.object({
  config_id: z.string(),
  url: z
    .string()
    .describe('The address of the receiver; only its origin if the texts of the owner are not shown'),
  dialect: z.string().nullable(),
  state: z.enum(['delivered', 'pending', 'failing', 'dropped']),
  settled: z.int().describe('The number of the last event that was delivered or dropped'),
  events: z.int().describe('The number of events of the task'),
  attempts: z.int(),
  delivered: z.int(),
  dropped: z.record(z.string(), z.int()),
  last_status: z.int().nullable(),
  last_error: z.string().nullable(),
  last_attempt_at: time.nullable(),
})

export const paymentSummary = z.object({
  payment_id: z.string(),
  state: z.string(),
  amount: z.string(),
  asset: z.string(),
  asset_name: z.string(),
  network: z.string(),
  payer: z.string().nullable(),
  tx_hash: z.string().nullable(),
  created_at: time,
  completed_at: time.nullable(),
  sandbox: z.literal(true).optional(),
})

const detail = {
  events: z.array(event),
  runs: z.array(run),
  message_count: z.int(),
  children: z.array(link),
  references: z.array(z.string()),
  webhooks: z.array(webhookSummary),
  payments: z.array(paymentSummary),
  usage: z
    .object({ input_tokens: z.int(), output_tokens: z.int(), models: z.array(z.string()) })
    .nullable()
    .describe('The tokens of language models that the handler reported'),
  feedback: z.object({ rating: z.number().nullable(), text: z.string().nullable(), at: time }).nullable(),
  task: jsonObject
    .nullable()
    .describe('The whole task in Parley’s dialect, with history and artifacts; null if texts are not shown'),
}

/** One task as its agent returns it. */
export const agentTaskDetail = z.object({ ...row, ...detail })

/** A task of the same chain, reduced to what a time axis shows. */
const chained = z.object({
  agent: z.string(),
  task_id: z.string(),
  parent_id: z.string().nullable(),
  state,
  created_at: time,
  updated_at: time,
  events: z.array(event),
  runs: z.array(run),
  webhooks: z
    .array(
      webhookSummary.pick({
        config_id: true,
        url: true,
        state: true,
        attempts: true,
        last_status: true,
        last_attempt_at: true,
      }),
    )
    .describe('The 10 webhooks with the latest attempts'),
  payments: z
    .array(
      paymentSummary.pick({
        payment_id: true,
        state: true,
        amount: true,
        asset_name: true,
        created_at: true,
        completed_at: true,
        sandbox: true,
      }),
    )
    .describe('The 10 newest payments'),
})

export const taskDetail = z
  .object({
    ...row,
    agent: z.string(),
    recorded_only: z.literal(true).optional(),
    ...detail,
    decision_id: z
      .string()
      .nullable()
      .describe('Why the gateway chose the agent (`GET /operator/decisions/{id}`)'),
    chain: z
      .array(chained)
      .describe(
        'The tasks of the same chain that could be read, parents before children, this task included',
      ),
    clock_skew_ms: z
      .record(z.string(), z.number())
      .describe('Per agent, by how much its clock is ahead of the gateway’s'),
    signatures: z
      .array(z.object({ artifact_id: z.string(), part: z.int(), verdict: z.string() }))
      .describe(
        'The check of the signature of each part of the artifacts with the proven keys of the agent; empty if texts are not shown',
      ),
    unread: unreadAgents,
  })
  .meta({ id: 'OperatorTaskDetail' })

/** `POST /operator/tasks/{id}/cancel`. The agent returns it without `agent`. */
export const canceledTask = z.object({ agent: z.string(), task_id: z.string(), state })

export const queueAnswer = z.object({
  agents: z.array(
    z.object({
      agent: z.string(),
      queued: z.int(),
      running: z.int(),
      waiting: z.int().describe('Tasks that wait for a person or a payment'),
      oldest_queued_at: time.nullable(),
      owners: z
        .array(z.object({ owner: z.string(), queued: z.int() }))
        .describe('The owners with the most tasks'),
      ended: z.record(z.string(), z.int()).describe('All tasks that have ever ended, by state'),
    }),
  ),
  unread: unreadAgents,
})
export const agentQueue = queueAnswer.shape.agents.element.omit({ agent: true })

/** Why a task waits. Agents may add the question to their rows. */
const waits = {
  question: z.string().nullable(),
  payment: money.nullable(),
  expires_at: time.nullable(),
}
const waitingRow = agentTaskRow.extend({ question: waits.question.optional() })
export const agentWaitingList = z.object({ tasks: z.array(waitingRow), next_cursor: nextCursor })

export const waitingQuery = z.object({
  limit: pageQuery.limit,
  cursor: pageQuery.cursor,
  agent: taskListQuery.shape.agent,
  owner: taskListQuery.shape.owner,
})
/** A task or an application that waits for a person. */
export const waitingAnswer = z.object({
  tasks: z.array(taskRow.extend(waits)),
  admissions: z.array(
    z.object({ agent: z.string(), name: z.string(), registered_at: time, reason: z.string() }),
  ),
  next_cursor: nextCursor,
  unread: unreadAgents,
})
