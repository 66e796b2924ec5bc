import { z } from 'zod'
import type { Operation } from '../../model/operation.ts'
import type {
  WireArtifact,
  WireMessage,
  WirePart,
  WireStatus,
  WireTask,
  WireTaskPushConfig,
} from '../a2a-v03/shapes.ts'
import { jsonMap, time } from './fields.ts'
import { cardAnswer } from './skills.ts'

/** The results of A2A 0.3 (spec/a2a.md#03-methods). */

const metadata = jsonMap.exactOptional()
const text = z.string().exactOptional()
const texts = z.array(z.string()).exactOptional()

const part: z.ZodType<WirePart> = z
  .discriminatedUnion('kind', [
    z.object({ kind: z.literal('text'), text: z.string(), metadata }),
    z.object({ kind: z.literal('data'), data: jsonMap, metadata }),
    z.object({
      kind: z.literal('file'),
      file: z.object({ name: text, mimeType: text, bytes: text, uri: text }),
      metadata,
    }),
  ])
  .meta({ id: 'A2a03Part' })

const message: z.ZodType<WireMessage> = z
  .object({
    kind: z.literal('message'),
    role: z.enum(['user', 'agent']),
    parts: z.array(part),
    messageId: z.string(),
    contextId: text,
    taskId: text,
    referenceTaskIds: texts,
    extensions: texts,
    metadata,
  })
  .meta({ id: 'A2a03Message' })

const status: z.ZodType<WireStatus> = z.object({
  state: z.enum([
    'submitted',
    'working',
    'input-required',
    'auth-required',
    'completed',
    'failed',
    'canceled',
    'rejected',
  ]),
  timestamp: time,
  message: message.exactOptional(),
})

const artifact: z.ZodType<WireArtifact> = z.object({
  artifactId: z.string(),
  name: text,
  description: text,
  parts: z.array(part),
  extensions: texts,
  metadata,
})

const task: z.ZodType<WireTask> = z
  .object({
    kind: z.literal('task'),
    id: z.string(),
    contextId: z.string(),
    status,
    history: z.array(message),
    artifacts: z.array(artifact),
    metadata,
  })
  .meta({ id: 'A2a03Task' })

const pushConfig: z.ZodType<WireTaskPushConfig> = z
  .object({
    taskId: z.string(),
    pushNotificationConfig: z.object({
      id: text,
      url: z.string(),
      token: text,
      authentication: z.object({ schemes: z.array(z.string()), credentials: text }).exactOptional(),
    }),
  })
  .meta({ id: 'A2a03PushConfig' })

/** The result of each operation; undefined for streams and for operations that the protocol lacks. */
export const results: Readonly<Partial<Record<Operation, z.ZodType>>> = {
  sendMessage: z.union([task, message]),
  getTask: task,
  cancelTask: task,
  setPushConfig: pushConfig,
  getPushConfig: pushConfig,
  listPushConfigs: z.array(pushConfig),
  deletePushConfig: z.null(),
  getExtendedCard: cardAnswer,
}

/** The error of the REST path of the extended card. */
export const restError = z
  .object({ code: z.int(), message: z.string(), data: z.unknown().optional() })
  .meta({ id: 'A2a03RestError' })
