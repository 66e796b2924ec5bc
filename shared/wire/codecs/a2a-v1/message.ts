import { z } from 'zod'
import { ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { IncomingMessage } from '../../model/call.ts'
import type { Ids } from '../../model/ids.ts'
import { isJsonObject } from '../../model/json-text.ts'
import type { ContentHints, FileContent, JsonObject, JsonValue, Part } from '../../model/task.ts'
import { uuidPattern } from '../../model/uuid.ts'
import { wireForms } from '../wire-form.ts'
import { bytes, optionalText, protoObject } from './proto-json.ts'
import { roleIn } from './states.ts'

/** The length of an ID that a client chooses, in UTF-16 units. */
export const idMaxChars = 256

/** An ID of any characters that is present. */
export const id = z.string().min(1, 'is missing').max(idMaxChars)
export const optionalId = optionalText(idMaxChars)

/** Not copied, unlike with `z.record`: the parser has already rejected hostile keys and deep nesting. */
export const struct = z
  .custom<JsonObject>(isObject, 'must be an object')
  .register(wireForms, { schema: { type: 'object' } })

/** Marks a data part whose data is not an object. a2a-python uses the same mark. */
const wrappedMark = 'data_part_compat'

const content = {
  text: z.string().optional(),
  raw: bytes.optional(),
  url: z.string().max(2048).optional(),
  metadata: struct.optional(),
  filename: optionalText(1024),
  mediaType: optionalText(256),
}
const contentNames = ['text', 'raw', 'url', 'data'] as const
const contentIn = protoObject(content)
type Content = z.output<typeof contentIn> & { data?: JsonValue | undefined }

/** A null is a value of `data`, unless the part has other content. */
function dataOf(given: unknown): { data?: JsonValue } {
  if (!isObject(given) || !Object.hasOwn(given, 'data')) return {}
  const { data, text, raw, url } = given
  if (data === null && [text, raw, url].some((other) => other !== undefined && other !== null)) return {}
  return isJson(data) ? { data } : {}
}

const isJson = (value: unknown): value is JsonValue => value !== undefined

/** A part has one of the contents. */
const partForm = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    raw: { type: 'string', contentEncoding: 'base64' },
    url: { type: 'string', format: 'uri' },
    data: {},
    metadata: { type: 'object' },
    filename: { type: 'string' },
    mediaType: { type: 'string' },
  },
  oneOf: contentNames.map((name) => ({ required: [name] })),
}

/** @param mayLink whether the URL may be shown as a link */
function partSchema(mayLink: 'http only' | 'others as text'): z.ZodType<Part> {
  return z
    .unknown()
    .register(wireForms, { schema: partForm })
    .transform((given, context): Part => {
      const parsed = contentIn.safeParse(given)
      for (const { path, message } of parsed.error?.issues ?? [])
        context.addIssue({ code: 'custom', path, message })
      if (!parsed.success) return z.NEVER
      const read: Content = { ...parsed.data, ...dataOf(given) }
      const present = contentNames.filter((name) => read[name] !== undefined)
      if (present.length !== 1) {
        const message =
          present.length === 0
            ? 'must have one of text, raw, url and data'
            : `must not be combined with ${present[0]}`
        context.addIssue({ code: 'custom', path: present.slice(1, 2), message })
        return z.NEVER
      }
      if (read.url !== undefined && !/^https?:\/\//i.test(read.url)) {
        if (mayLink === 'others as text')
          return toPart({ ...read, url: undefined, text: read.url, mediaType: 'text/uri-list' })
        context.addIssue({ code: 'custom', path: ['url'], message: 'must begin with http:// or https://' })
        return z.NEVER
      }
      return toPart(read)
    })
}

function toPart({ text, raw, url, data, metadata, filename, mediaType }: Content): Part {
  const hints: ContentHints & { metadata?: JsonObject } = {}
  if (metadata !== undefined) hints.metadata = metadata
  if (raw !== undefined || url !== undefined) {
    const file: FileContent = {}
    if (filename !== undefined) file.name = filename
    if (mediaType !== undefined) file.mimeType = mediaType
    if (raw !== undefined) file.bytes = raw
    if (url !== undefined) file.uri = url
    return { kind: 'file', file, ...hints }
  }
  if (mediaType !== undefined) hints.mediaType = mediaType
  if (filename !== undefined) hints.filename = filename
  if (text !== undefined) return { kind: 'text', text, ...hints }
  if (isJsonObject(data)) return { kind: 'data', data, ...hints }
  return {
    kind: 'data',
    data: { value: data ?? null },
    ...hints,
    metadata: { ...metadata, [wrappedMark]: true },
  }
}

/** A part from a client. */
const partIn = partSchema('http only')
/** A part from another server. A URL that is not of the web becomes a text, so that no reader follows it. */
export const partOfServer = partSchema('others as text')

/** Returns the data and the metadata as the client sent them. */
export function unwrapped(
  data: JsonObject,
  metadata: JsonObject | undefined,
): [JsonValue, JsonObject | undefined] {
  if (metadata?.[wrappedMark] !== true || !Object.hasOwn(data, 'value')) return [data, metadata]
  const { [wrappedMark]: _mark, ...rest } = metadata
  const value = data['value'] ?? null
  return Object.keys(rest).length === 0 ? [value, undefined] : [value, rest]
}

export const extensionsIn = z.array(z.string().max(2048)).max(100).optional()

export const messageIn = protoObject({
  messageId: id,
  contextId: optionalId,
  taskId: optionalId,
  role: roleIn.refine((role) => role !== undefined, 'must be ROLE_USER or ROLE_AGENT'),
  parts: z.array(partIn).min(1, 'must hold at least one part').max(1000),
  metadata: struct.optional(),
  extensions: extensionsIn,
  referenceTaskIds: z.array(id).max(100).optional(),
})

/** @throws ParleyError TaskNotFound */
export function toMessage(sent: z.output<typeof messageIn>, ids: Ids): IncomingMessage {
  const { messageId, contextId, taskId, referenceTaskIds = [], extensions = [] } = sent
  const message = ids(messageId)
  const context = contextId === undefined ? undefined : ids(contextId)
  return {
    role: sent.role ?? 'user',
    parts: sent.parts,
    messageId: message.id,
    messageName: message.name,
    contextId: context?.id,
    contextName: context?.name,
    taskId: taskId === undefined ? undefined : taskIdOf(taskId),
    referenceTaskIds: referenceTaskIds.length === 0 ? undefined : referenceTaskIds.map(taskIdOf),
    extensions: extensions.length === 0 ? undefined : extensions,
    metadata: sent.metadata,
  }
}

/** The server chooses the IDs of tasks, and all of them are UUIDs. @throws ParleyError TaskNotFound */
export function taskIdOf(given: string): string {
  if (!uuidPattern.test(given)) throw new ParleyError('TaskNotFound')
  return given.toLowerCase()
}
