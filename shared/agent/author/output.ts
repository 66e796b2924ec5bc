import type { FileContent, JsonObject, Part } from '@parley/wire/model/task'

/**
 * What a handler returns or yields. A string or a data object is a part of the answer; yielded strings are streamed
 * as deltas and joined. `artifact(…)` and `file(…)` make artifacts of their own.
 */
export type Output = string | JsonObject | OutputArtifact | OutputFile | Pause | undefined | void | null

const brand: unique symbol = Symbol('parley.output')

export interface OutputFile {
  [brand]: 'file'
  file: FileContent & { bytes: string }
}
/** A named artifact of several parts. */
export interface OutputArtifact {
  [brand]: 'artifact'
  name: string
  parts: Part[]
}
export type Artifact = OutputArtifact

/** Made by `ask`, `requireAuth`, `requirePayment`, `bid` and `decline` of the context; return it. */
export interface Pause {
  [brand]: 'pause'
  kind: 'ask' | 'auth' | 'payment' | 'bid' | 'decline'
  parts: Part[]
}

type Content = string | JsonObject | OutputFile

/** A file of the answer, an artifact named as the file. `bytes` as text (UTF-8) or bytes. */
export function file(name: string, mimeType: string, bytes: string | Uint8Array): OutputFile {
  const base64 = Buffer.from(bytes as Uint8Array).toString('base64')
  return { [brand]: 'file', file: { name, mimeType, bytes: base64 } }
}

/** A data object as part of the answer; the same as returning the object, for readers who want it said. */
export function data(object: JsonObject): JsonObject {
  return object
}

/** An artifact with a name, of texts, data objects and files. */
export function artifact(name: string, ...content: Content[]): OutputArtifact {
  return { [brand]: 'artifact', name, parts: content.map(partOf) }
}

export function pause(kind: Pause['kind'], parts: Part[]): Pause {
  return { [brand]: 'pause', kind, parts }
}

export function partOf(content: Content): Part {
  if (typeof content === 'string') return { kind: 'text', text: content }
  if (isBranded(content, 'file')) return { kind: 'file', file: (content as OutputFile).file }
  return { kind: 'data', data: content as JsonObject }
}

function isBranded(value: unknown, kind: 'file' | 'artifact' | 'pause'): boolean {
  return typeof value === 'object' && value !== null && (value as { [brand]?: unknown })[brand] === kind
}

export const isFile = (value: unknown): value is OutputFile => isBranded(value, 'file')
export const isArtifact = (value: unknown): value is OutputArtifact => isBranded(value, 'artifact')
export const isPause = (value: unknown): value is Pause => isBranded(value, 'pause')
