import { randomUUID } from 'node:crypto'
import type { Part } from '../model/task.ts'

/** The placeholder in JSON for a part that is read later. Callers cannot guess it. */
const placeholder = `lazy-part-${randomUUID()}`

let found: LazyPart[] | undefined

/** A large part that is still in the store. It replaces the part in a task that is about to be serialized. */
export class LazyPart {
  readonly kind = 'lazy'
  /** The estimated length of its JSON. */
  readonly bytes: number
  readonly load: () => Promise<Part>

  constructor(bytes: number, load: () => Promise<Part>) {
    this.bytes = bytes
    this.load = load
  }

  toJSON(): string {
    if (found === undefined) throw new Error('A lazy part can be serialized by toLazyJson only')
    found.push(this)
    return placeholder
  }
}

/** The JSON of a value. Its lazy parts are loaded one at a time while the JSON is read. */
export interface LazyJson {
  /** The estimated length of the whole JSON. */
  bytes: number
  /** The texts between the parts; there is one more text than there are parts. */
  texts: string[]
  parts: LazyPart[]
  writePart: WritePart
}

/** Writes a loaded part in the value's dialect. */
type WritePart = (part: Part) => unknown

/** @param wrap adds text around the value's JSON */
export function toLazyJson(
  value: unknown,
  writePart: WritePart,
  wrap: (json: string) => string = (json) => json,
): LazyJson {
  const parts: LazyPart[] = []
  found = parts
  try {
    const text = wrap(JSON.stringify(value))
    const texts = parts.length === 0 ? [text] : text.split(`"${placeholder}"`)
    const bytes = parts.reduce((sum, part) => sum + part.bytes, text.length)
    return { bytes, texts, parts, writePart }
  } finally {
    found = undefined
  }
}

const chunkBytes = 64 * 1024

/** Yields the bytes in chunks of at most 64 KiB. At most one part is in memory at a time. */
export async function* chunksOf({ texts, parts, writePart }: LazyJson): AsyncGenerator<Buffer> {
  for (const [index, text] of texts.entries()) {
    yield* cut(Buffer.from(text))
    const part = await parts[index]?.load()
    if (part !== undefined) yield* cut(Buffer.from(JSON.stringify(writePart(part))))
  }
}

function* cut(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.byteLength; from += chunkBytes)
    yield bytes.subarray(from, from + chunkBytes)
}

/** Estimates the length of a value's JSON without serializing it. */
export function roughBytesOf(value: unknown): number {
  let bytes = 0
  const waiting: unknown[] = [value]
  while (waiting.length > 0) {
    const next = waiting.pop()
    bytes += typeof next === 'string' ? next.length + 3 : 5
    if (next instanceof LazyPart) bytes += next.bytes
    else if (typeof next === 'object' && next !== null)
      for (const [key, inner] of Object.entries(next)) {
        bytes += key.length + 4
        waiting.push(inner)
      }
  }
  return bytes
}
