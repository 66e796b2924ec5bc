import { z } from 'zod'
import { ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { IncomingMessage } from '../../model/call.ts'
import type { Ids } from '../../model/ids.ts'
import type { Part } from '../../model/task.ts'
import { camelFileContent, jsonObject, uuid } from '../parley/message.ts'
import { camelObject } from '../parley/spelling.ts'

/** Message and Part as a caller sends them (spec/a2a.md#03-messages). */

/** The length of an ID that a client chooses, in UTF-16 units. */
const idMaxChars = 256

/** An ID of any characters. */
export const clientId = z.string().min(1, 'is missing').max(idMaxChars)
export const optionalId = filled(z.string().max(idMaxChars))

/** A text that may be absent. Some clients send an empty text in its place. */
export function filled(text: z.ZodString) {
  return z
    .string()
    .transform((given) => (given === '' ? undefined : given))
    .pipe(text.optional())
    .optional()
}

/**
 * Task IDs are those of this server. An ID that it cannot have made is the ID of a missing task.
 * @throws ParleyError TaskNotFound
 */
export function taskIdOf(given: string): string {
  const id = uuid.safeParse(given).data
  if (id === undefined) throw new ParleyError('TaskNotFound', { data: {} })
  return id
}

/** Creates the schema of a part. Clients before version 0.2 name the kind `type`. */
export function partOf<File extends z.ZodType>(file: File) {
  const metadata = jsonObject.exactOptional()
  return z.preprocess(
    withKind,
    z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('text'), text: z.string(), metadata }),
      z.object({ kind: z.literal('data'), data: jsonObject, metadata }),
      z.object({ kind: z.literal('file'), file, metadata }),
    ]),
  )
}

function withKind(given: unknown): unknown {
  if (!isObject(given)) return given
  const { metadata, type, ...rest } = given
  return { kind: type, ...rest, ...(metadata !== null && metadata !== undefined && { metadata }) }
}

const part = partOf(camelFileContent) satisfies z.ZodType<Part>

export const messageIn = camelObject({
  kind: z.literal('message').optional(),
  role: z.enum(['user', 'agent']),
  parts: z.array(part).min(1, 'must hold at least one part').max(1000),
  messageId: clientId,
  contextId: optionalId,
  taskId: optionalId,
  referenceTaskIds: z.array(clientId).max(100).optional(),
  extensions: z.array(z.string().max(2048)).max(100).optional(),
  metadata: jsonObject.optional(),
})

/** @throws ParleyError TaskNotFound */
export function incomingMessage(given: z.output<typeof messageIn>, ids: Ids): IncomingMessage {
  const { role, parts, taskId, referenceTaskIds, extensions, metadata } = given
  const message = ids(given.messageId)
  const context = given.contextId === undefined ? undefined : ids(given.contextId)
  return {
    role,
    parts,
    messageId: message.id,
    messageName: message.name,
    contextId: context?.id,
    contextName: context?.name,
    taskId: taskId === undefined ? undefined : taskIdOf(taskId),
    referenceTaskIds: referenceTaskIds?.map(taskIdOf),
    extensions,
    metadata,
  }
}
