import type { FileContent, JsonObject, Part } from '@parley/wire/model/task'

/**
 * A value that a handler returns or yields (spec/messages-and-artifacts.md#output). Strings and data objects are parts of
 * the main artifact; yielded strings are streamed as deltas and joined. `artifact(…)` and `file(…)` make separate artifacts.
 */
export type Output = string | JsonObject | OutputArtifact | OutputFile | Pause | undefined | void | null

const brand: unique symbol = Symbol('parley.output')

/** A file, made by `file`. */
export interface OutputFile {
  [brand]: 'file'
  /** `bytes` is base64. */
  file: FileContent & { bytes: string }
}

/** A named artifact of several parts, made by `artifact`. */
export interface OutputArtifact {
  [brand]: 'artifact'
  /** At most 1,024 characters. */
  name: string
  /** The parts of the content, in order. */
  parts: Part[]
}

/** A named artifact of several parts, made by `artifact`. */
export type Artifact = OutputArtifact

/** The result of `ask`, `requireAuth`, `requirePayment`, `bid` and `decline` of the context. A handler returns it. */
export interface Pause {
  [brand]: 'pause'
  /** Which of these functions made it. */
  kind: 'ask' | 'auth' | 'payment' | 'bid' | 'decline'
  /** The message to the caller. */
  parts: Part[]
}

type Content = string | JsonObject | OutputFile

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
 * Makes a named artifact.
 * @param name at most 1,024 characters
 * @param content texts, data objects and files, in order
 */
export function artifact(name: string, ...content: Content[]): OutputArtifact {
  return { [brand]: 'artifact', name, parts: content.map(partOf) }
}

export function pause(kind: Pause['kind'], parts: Part[]): Pause {
  return { [brand]: 'pause', kind, parts }
}

export function partOf(content: Content): Part {
  if (typeof content === 'string') return { kind: 'text', text: content }
  return isFile(content) ? { kind: 'file', file: content.file } : { kind: 'data', data: content }
}

function isBranded(value: unknown, kind: 'file' | 'artifact' | 'pause'): boolean {
  return typeof value === 'object' && value !== null && brand in value && value[brand] === kind
}

export const isFile = (value: unknown): value is OutputFile => isBranded(value, 'file')
export const isArtifact = (value: unknown): value is OutputArtifact => isBranded(value, 'artifact')
export const isPause = (value: unknown): value is Pause => isBranded(value, 'pause')
