import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { IncomingMessage } from '../../model/call.ts'
import type { JsonObject, Part } from '../../model/task.ts'
import { uuidPattern } from '../../model/uuid.ts'
import { wireForms } from '../wire-form.ts'
import { camelObject, wireObject } from './spelling.ts'

/** Message and Part as a caller sends them (spec/messages-and-artifacts.md#message). */
/** Keeps the upper and lower case of the sender. */
const sentUuid = z.string().regex(uuidPattern, 'must be a UUID')

/** An ID used for lookups. It is converted to lower case because UUIDs are not case-sensitive. */
export const uuid = sentUuid.toLowerCase()

/** Unlike `z.record`, this does not copy the object. The parser has already rejected hostile keys and deep nesting. */
export const jsonObject = z
  .custom<JsonObject>(isObject, 'must be an object')
  .register(wireForms, { schema: { type: 'object' } })

export const base64 = z
  .string()
  .register(wireForms, { schema: { type: 'string', contentEncoding: 'base64' } })
  .refine((text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text), 'must be base64')

const fileFields = {
  name: z.string().max(1024).exactOptional(),
  mimeType: z.string().max(256).exactOptional(),
  bytes: base64.exactOptional(),
  uri: z
    .string()
    .max(2048)
    .regex(/^https?:\/\//i, 'must begin with http:// or https://')
    .exactOptional(),
}

/** A file has either its bytes or its address. */
function requireContent(file: { uri?: string; bytes?: string }, context: z.RefinementCtx): void {
  if (file.uri !== undefined && file.bytes !== undefined)
    context.addIssue({ code: 'custom', path: ['uri'], message: 'must not be combined with bytes' })
  else if (file.uri === undefined && file.bytes === undefined)
    context.addIssue({ code: 'custom', path: ['bytes'], message: 'is missing' })
}

export const fileContent = wireObject(fileFields).superRefine(requireContent)
/** The file of a protocol that spells its fields in camelCase. */
export const camelFileContent = camelObject(fileFields).superRefine(requireContent)

const metadata = jsonObject.exactOptional()
/** A part of a message or artifact. */
export const part: z.ZodType<Part> = z.preprocess(
  dropNullMetadata,
  z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('text'), text: z.string(), metadata }),
    z.object({ kind: z.literal('data'), data: jsonObject, metadata }),
    z.object({ kind: z.literal('file'), file: fileContent, metadata }),
  ]),
)

/** Some clients write every field, with `metadata: null`. */
function dropNullMetadata(given: unknown): unknown {
  if (!isObject(given) || given['metadata'] !== null) return given
  const { metadata: _dropped, ...rest } = given
  return rest
}

export const messageIn = wireObject({
  role: z.enum(['user', 'agent', 'assistant', 'system']),
  parts: z.array(part).min(1, 'must hold at least one part').max(1000),
  kind: z.literal('message').optional(),
  messageId: sentUuid,
  contextId: uuid.optional(),
  taskId: uuid.optional(),
  referenceTaskIds: z.array(uuid).max(100).optional(),
  metadata: jsonObject.optional(),
}) satisfies z.ZodType<IncomingMessage>
