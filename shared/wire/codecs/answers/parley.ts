import { z } from 'zod'
import type { Operation } from '../../model/operation.ts'
import { taskStates } from '../../model/task.ts'
import type {
  WireArtifact,
  WireEventPage,
  WireMessage,
  WirePart,
  WireStatus,
  WireTask,
  WireTaskPushConfig,
} from '../parley/shapes.ts'
import { jsonMap, time } from './fields.ts'
import { cardAnswer } from './skills.ts'

/** The results of the JSON-RPC methods of Parley (spec/methods.md#method-table). */

const metadata = jsonMap.exactOptional()
const part: z.ZodType<WirePart> = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('text'), text: z.string(), metadata }),
    z.object({ kind: z.literal('data'), data: jsonMap, metadata }),
    z.object({
      kind: z.literal('file'),
      file: z.object({
        name: z.string().exactOptional(),
        mime_type: z.string().exactOptional(),
        bytes: z.string().exactOptional(),
        uri: z.string().exactOptional(),
      }),
      metadata,
    }),
  ])
  .meta({ id: 'Part' })

const message: z.ZodType<WireMessage> = z
  .object({
    kind: z.literal('message'),
    role: z.enum(['user', 'agent', 'assistant', 'system']),
    parts: z.array(part),
    message_id: z.string(),
    context_id: z.string(),
    task_id: z.string(),
    reference_task_ids: z.array(z.string()).exactOptional(),
    metadata,
  })
  .meta({ id: 'Message' })

const status: z.ZodType<WireStatus> = z
  .object({ state: z.enum(taskStates), timestamp: time, message: message.exactOptional() })
  .meta({ id: 'TaskStatus' })

export const artifact: z.ZodType<WireArtifact> = z
  .object({
    artifact_id: z.string(),
    name: z.string(),
    description: z.string().exactOptional(),
    parts: z.array(part),
    metadata,
  })
  .meta({ id: 'Artifact' })

const link = z.object({ agent: z.string(), task_id: z.string() })

/** A part of a request that a gateway has split. */
const chainLink = z.object({
  position: z.int(),
  agent: z.string().exactOptional(),
  task_id: z.string().exactOptional(),
  state: z.string(),
})

const taskFields = {
  kind: z.literal('task'),
  id: z.string(),
  context_id: z.string(),
  status,
  history: z.array(message),
  artifacts: z.array(artifact),
  metadata: z
    .object({
      parent: link.exactOptional(),
      root_task_id: z.string().exactOptional(),
      children: z.array(link).exactOptional(),
      chain: z.array(chainLink).exactOptional(),
    })
    .exactOptional(),
}
const task: z.ZodType<WireTask> = z.object(taskFields).meta({ id: 'Task' })

const envelope = {
  event_id: z.string().exactOptional(),
  sequence: z.int().exactOptional(),
  timestamp: time,
  task_id: z.string(),
  context_id: z.string(),
}
const events: z.ZodType<WireEventPage> = z.object({
  task_id: z.string(),
  events: z.array(
    z
      .discriminatedUnion('kind', [
        z.object({ kind: z.literal('status-update'), ...envelope, status, final: z.boolean() }),
        z.object({
          kind: z.literal('artifact-update'),
          ...envelope,
          artifact,
          append: z.boolean().exactOptional(),
          last_chunk: z.boolean().exactOptional(),
        }),
      ])
      .meta({ id: 'TaskEvent' }),
  ),
  last_sequence: z.int(),
  more: z.boolean(),
})

const pushConfig: z.ZodType<WireTaskPushConfig> = z
  .object({
    id: z.string(),
    push_notification_config: z.object({
      id: z.string(),
      url: z.string(),
      token: z.string().exactOptional(),
      authentication: metadata,
    }),
    long_running: z.boolean(),
    attempts: z.int(),
    delivered: z.int(),
    dropped: z.record(z.string(), z.int()),
    last_status: z.int().nullable(),
    last_error: z.string().nullable(),
    last_attempt_at: z.string().nullable(),
  })
  .meta({ id: 'TaskPushConfig' })

const context = z
  .object({
    context_id: z.string(),
    kind: z.literal('context'),
    role: z.literal('user'),
    created_at: time,
    updated_at: time,
    status: z.enum(['active', 'idle']),
    task_count: z.int(),
    task_ids: z.array(z.string()),
    tasks: z.array(z.string()),
  })
  .meta({ id: 'Context' })

const done = { success: z.literal(true), message: z.string() }

/** The result of each operation; undefined for streams. */
export const results: Readonly<Record<Operation, z.ZodType | undefined>> = {
  sendMessage: task,
  streamMessage: undefined,
  getTask: task,
  listTasks: z.array(z.object({ ...taskFields, created_at: time })),
  cancelTask: task,
  giveFeedback: z.object({ ...done, task_id: z.string() }),
  listTaskEvents: events,
  resubscribe: undefined,
  setPushConfig: pushConfig,
  getPushConfig: pushConfig,
  listPushConfigs: z.array(pushConfig),
  deletePushConfig: pushConfig.nullable(),
  listContexts: z.array(context),
  clearContext: z.object({ ...done, context_id: z.string() }),
  getExtendedCard: cardAnswer,
}
