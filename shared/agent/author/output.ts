import type { FileContent, JsonObject, Artifact as ModelArtifact, Part } from '@parley/wire/model/task'

/**
 * A value that a handler returns or yields (spec/messages-and-artifacts.md#output). Strings, data objects and `part(…)` are
 * parts of the main artifact; yielded strings are streamed as deltas and joined. `artifact(…)` and `file(…)` make separate
 * artifacts. `progress(…)` sends a message about the work so far. `reply(…)` of the context answers with a message instead of
 * the main artifact.
 */
export type Output =
  | string
  | JsonObject
  | OutputPart
  | OutputArtifact
  | OutputFile
  | OutputDelta
  | OutputProgress
  | Pause
  | Reply
  | undefined
  | void
  | null

const brand: unique symbol = Symbol('parley.output')

/** A file, made by `file`. */
export interface OutputFile {
  [brand]: 'file'
  /** `bytes` is base64. */
  file: FileContent & { bytes: string }
}

/** A part with metadata, a media type or a file name, made by `part`. */
export interface OutputPart {
  [brand]: 'part'
  /** The part as in the artifact. */
  part: Part
}

/** A part of a named artifact that streams receive early, made by `delta`. */
export interface OutputDelta {
  [brand]: 'delta'
  /** The part as in the artifact. */
  part: Part
  artifact: StreamedArtifact
}

/** An artifact of which streams receive deltas. The key identifies it within one run of a handler. */
export interface StreamedArtifact {
  key: string
  name: string
}

/** The artifact of the parts that a handler returns or yields without an artifact. */
export const mainArtifact: StreamedArtifact = { key: 'main', name: 'result' }

/** A message about the work so far, made by `progress`. */
export interface OutputProgress {
  [brand]: 'progress'
  /** The parts of the message, in order. */
  parts: Part[]
}

/** The fields of an artifact except its parts. */
export type ArtifactFields = Pick<ModelArtifact, 'name' | 'description' | 'extensions' | 'metadata'>

/** A named artifact of several parts, made by `artifact`. */
export interface OutputArtifact extends ArtifactFields {
  [brand]: 'artifact'
  /** The parts of the content, in order. */
  parts: Part[]
  /** The key of the deltas that belong to the artifact. */
  streamed?: string
}

/** A named artifact of several parts, made by `artifact`. */
export type Artifact = OutputArtifact

/**
 * The result of `ask`, `requireAuth`, `requirePayment`, `bid` and `decline` of the context. A handler returns it. The kind
 * `fail` ends the task like a thrown error.
 */
export interface Pause {
  [brand]: 'pause'
  /** Which of these functions made it. */
  kind: 'ask' | 'auth' | 'payment' | 'bid' | 'decline' | 'fail'
  /** The message to the caller. */
  parts: Part[]
  /** The metadata of the message. */
  metadata?: JsonObject
}

/** The result of `reply` of the context. A handler returns it. */
export interface Reply {
  [brand]: 'reply'
  /** The parts of the message, in order. */
  parts: Part[]
  /** Whether A2A clients that wait receive the task with the message instead of only the message. */
  asTask: boolean
  /** The metadata of the message. */
  metadata?: JsonObject
}

/** The content of an artifact or a reply. */
export type Content = string | JsonObject | OutputPart | OutputFile

/**
 * Makes an artifact of a file, named after the file.
 * @param name the file name, at most 1,024 characters
 * @param mimeType for example `application/pdf`
 * @param bytes the content; a string is encoded as UTF-8
 */
export function file(name: string, mimeType: string, bytes: string | Uint8Array): OutputFile {
  const buffer = typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes)
  return { [brand]: 'file', file: { name, mimeType, bytes: buffer.toString('base64') } }
}

/** Makes a data object part of the main artifact. This is equivalent to returning the object. */
export function data(object: JsonObject): JsonObject {
  return object
}

/**
 * Makes an output of a part as it appears in artifacts, for metadata, a `mediaType` or `filename` of text and data, or a
 * file with a `uri` (http or https, at most 2,048 characters) instead of `bytes`:
 *
 * ```ts
 * yield part({ kind: 'text', text: 'a,b', mediaType: 'text/csv', filename: 'table.csv' })
 * ```
 */
export function part(content: Part): OutputPart {
  return { [brand]: 'part', part: content }
}

/**
 * Makes a named artifact.
 * @param name at most 1,024 characters; or the name together with a description, metadata and URIs of A2A extensions
 * @param content texts, data objects, parts and files, in order
 */
export function artifact(name: string | ArtifactFields, ...content: Content[]): OutputArtifact {
  const fields = typeof name === 'string' ? { name } : name
  return { [brand]: 'artifact', ...fields, parts: content.map(partOf) }
}

/**
 * Makes a message about the work so far, at most 16 KiB. Callers receive it on streams and webhooks as a `status-update` with the
 * state `working`. The newest one is the task's status message until the task ends or pauses; it is not part of the history.
 *
 * ```ts
 * yield progress(`Read ${pages} of ${total} pages`)
 * ```
 *
 * Messages may be yielded at any rate: at most one per second is sent, after a minute fewer, and a newer message replaces one
 * that was not sent yet (spec/messages-and-artifacts.md#progress).
 */
export function progress(...content: Content[]): OutputProgress {
  return { [brand]: 'progress', parts: content.map(partOf) }
}

/** Makes an output that streams receive as a delta. The artifact of `streamedArtifact` with the same key contains it again. */
export function delta(content: Part, artifact: StreamedArtifact): OutputDelta {
  return { [brand]: 'delta', part: content, artifact }
}

/** Makes a named artifact of which streams have received deltas. */
export function streamedArtifact(key: string, fields: ArtifactFields, parts: Part[]): OutputArtifact {
  return { [brand]: 'artifact', ...fields, parts, streamed: key }
}

export function reply(
  content: string | readonly Content[],
  { asTask = false, metadata }: { asTask?: boolean; metadata?: JsonObject | undefined } = {},
): Reply {
  const contents = typeof content === 'string' ? [content] : content
  return { [brand]: 'reply', parts: contents.map(partOf), asTask, ...(metadata && { metadata }) }
}

export function pause(kind: Pause['kind'], parts: Part[], metadata?: JsonObject): Pause {
  return { [brand]: 'pause', kind, parts, ...(metadata && { metadata }) }
}

export function partOf(content: Content): Part {
  if (typeof content === 'string') return { kind: 'text', text: content }
  if (isPart(content)) return content.part
  return isFile(content) ? { kind: 'file', file: content.file } : { kind: 'data', data: content }
}

function isBranded(
  value: unknown,
  kind: 'file' | 'part' | 'delta' | 'progress' | 'artifact' | 'pause' | 'reply',
): boolean {
  return typeof value === 'object' && value !== null && brand in value && value[brand] === kind
}

export const isPart = (value: unknown): value is OutputPart => isBranded(value, 'part')
export const isDelta = (value: unknown): value is OutputDelta => isBranded(value, 'delta')
export const isProgress = (value: unknown): value is OutputProgress => isBranded(value, 'progress')
export const isReply = (value: unknown): value is Reply => isBranded(value, 'reply')
export const isFile = (value: unknown): value is OutputFile => isBranded(value, 'file')
export const isArtifact = (value: unknown): value is OutputArtifact => isBranded(value, 'artifact')
export const isPause = (value: unknown): value is Pause => isBranded(value, 'pause')
