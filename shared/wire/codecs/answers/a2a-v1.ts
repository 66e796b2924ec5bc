import { z } from 'zod'
import type { Operation } from '../../model/operation.ts'
import { jsonObject, jsonValue } from './fields.ts'
import { cardAnswer } from './skills.ts'

/** The results of A2A 1.0, in JSON-RPC and in REST (spec/a2a.md#10-methods). */

const texts = z.array(z.string()).optional()

const part = z
  .object({
    text: z.string().optional(),
    raw: z.string().optional(),
    url: z.string().optional(),
    data: jsonValue.optional(),
    metadata: jsonObject.optional(),
    filename: z.string().optional(),
    mediaType: z.string().optional(),
  })
  .meta({ id: 'A2aPart' })

const message = z
  .object({
    messageId: z.string(),
    contextId: z.string().optional(),
    taskId: z.string().optional(),
    role: z.enum(['ROLE_USER', 'ROLE_AGENT']),
    parts: z.array(part),
    metadata: jsonObject.optional(),
    extensions: texts,
    referenceTaskIds: texts,
  })
  .meta({ id: 'A2aMessage' })

const states = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_REJECTED',
  'TASK_STATE_AUTH_REQUIRED',
]

const task = z
  .object({
    id: z.string(),
    contextId: z.string(),
    status: z.object({ state: z.enum(states), timestamp: z.iso.datetime(), message: message.optional() }),
    artifacts: z
      .array(
        z.object({
          artifactId: z.string(),
          name: z.string().optional(),
          description: z.string().optional(),
          parts: z.array(part),
          metadata: jsonObject.optional(),
          extensions: texts,
        }),
      )
      .optional(),
    history: z.array(message).optional(),
    metadata: jsonObject.optional(),
  })
  .meta({ id: 'A2aTask' })

const sent = z.union([z.object({ task }), z.object({ message })])

const pushConfig = z
  .object({
    taskId: z.string(),
    id: z.string(),
    url: z.string(),
    token: z.string().optional(),
    authentication: z.object({ scheme: z.string(), credentials: z.string().optional() }).optional(),
  })
  .meta({ id: 'A2aPushConfig' })

/** The result of each operation; undefined for streams and for operations that the protocol lacks. */
export const results: Readonly<Partial<Record<Operation, z.ZodType>>> = {
  sendMessage: sent,
  getTask: task,
  listTasks: z.object({
    tasks: z.array(task),
    nextPageToken: z.string(),
    pageSize: z.int(),
    totalSize: z.int(),
  }),
  cancelTask: task,
  setPushConfig: pushConfig,
  getPushConfig: pushConfig,
  listPushConfigs: z.object({
    configs: z.array(pushConfig).optional(),
    nextPageToken: z.string().optional(),
  }),
  deletePushConfig: z.object({}),
  getExtendedCard: cardAnswer,
}

/** The error of a REST route (AIP-193). */
export const restError = z
  .object({
    error: z.object({
      code: z.int(),
      status: z.string(),
      message: z.string(),
      details: z.array(jsonObject),
    }),
  })
  .meta({ id: 'A2aRestError' })
