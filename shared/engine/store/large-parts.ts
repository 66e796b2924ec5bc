import { hash } from 'node:crypto'
import type { LazyPart } from '@parley/wire/codecs/lazy-part'
import type { Message, Part } from '@parley/wire/model/task'
import type { TaskRecord } from './store.ts'

/** The fields that contain parts, both in the record and in the stored body. */
type Holder = Pick<TaskRecord, 'history' | 'artifacts' | 'events' | 'status' | 'foreignReferences'>

/** Replaces a separately stored part in the stored body. Callers and handlers never send parts of this kind. */
interface StoredPart {
  kind: 'stored'
  hash: string
}

/**
 * A part that is stored separately. Its JSON is built on demand, because most commits find the part already stored.
 */
export interface LargePart {
  /** SHA-256 of the part's JSON. */
  hash: string
  json: () => string
}

/**
 * Separates parts larger than `largePartBytes` (approximately, in characters of JSON) from a record. The name of a
 * part is the hash of its content, so a part that occurs in both the history and an artifact is stored only once, and
 * later commits do not write it again.
 */
export class LargeParts {
  readonly #largePartBytes: number
  /** Caches hashes: hashing 30 MB takes 30 ms, and every commit of a task contains the same part objects. */
  readonly #known = new WeakMap<Part, { strings: Strings; hash: string }>()

  constructor(largePartBytes: number) {
    this.#largePartBytes = largePartBytes
  }

  /** Returns a copy of the record in which references replace the large parts, and the large parts. */
  takeOut<T extends Holder>(record: T): { body: T; parts: LargePart[] } {
    if (!this.#anyLarge(record)) return { body: record, parts: [] }
    const found = new Map<string, LargePart>()
    const body = mapParts(record, (part) => {
      if (!this.#isLarge(part)) return part
      const large = this.#named(part)
      found.set(large.hash, large)
      return { kind: 'stored', hash: large.hash } satisfies StoredPart as unknown as Part
    })
    return { body, parts: [...found.values()] }
  }

  /** Returns the record with its large parts. `load` returns the JSON of the part with the given hash. */
  putBack<T extends Holder>(body: T, load: (hash: string) => string): T {
    const loaded = new Map<string, Part>()
    return mapParts(body, (part) => {
      const name = storedHash(part)
      if (name === undefined) return part
      const known = loaded.get(name)
      if (known !== undefined) return { ...known }
      const whole: Part = JSON.parse(load(name))
      loaded.set(name, whole)
      this.#remember(whole, name)
      return whole
    })
  }

  /** Returns the record with a lazy part in place of each large part. `lazy` returns the lazy part for a hash. */
  outline<T extends Holder>(body: T, lazy: (hash: string) => LazyPart): T {
    return mapParts(body, (part) => {
      const name = storedHash(part)
      return name === undefined ? part : (lazy(name) as unknown as Part)
    })
  }

  #anyLarge(record: Holder): boolean {
    let any = false
    eachPart(record, (part) => {
      if (storedHash(part) !== undefined) throw new Error('A part of kind "stored" is not ours to take')
      any ||= this.#isLarge(part)
    })
    return any
  }

  #isLarge(part: Part): boolean {
    const limit = this.#largePartBytes
    if (part.metadata !== undefined && isLongerThan(part, limit)) return true
    if (part.kind === 'text') return part.text.length > limit
    if (part.kind === 'file') return (part.file.bytes ?? part.file.uri ?? '').length > limit
    return isLongerThan(part.data, limit)
  }

  #named(part: Part): LargePart {
    const known = this.#known.get(part)
    if (known !== undefined && sameStrings(known.strings, stringsOf(part))) {
      return { hash: known.hash, json: () => JSON.stringify(part) }
    }
    const json = JSON.stringify(part)
    const name = hash('sha256', json, 'base64url')
    this.#remember(part, name)
    return { hash: name, json: () => json }
  }

  #remember(part: Part, name: string): void {
    const strings = stringsOf(part)
    if (strings !== undefined) this.#known.set(part, { strings, hash: name })
  }
}

type Strings = readonly (string | undefined)[] | undefined

/** The content of a part that consists only of strings, which, unlike objects, cannot be modified in place. */
function stringsOf(part: Part): Strings {
  if (part.metadata !== undefined || part.kind === 'data') return undefined
  if (part.kind === 'text') return ['text', part.text]
  const { bytes, uri, name, mimeType } = part.file
  return ['file', bytes, uri, name, mimeType]
}

function sameStrings(one: Strings, other: Strings): boolean {
  return (
    one !== undefined && one.length === other?.length && one.every((text, index) => text === other[index])
  )
}

function storedHash(part: Part): string | undefined {
  const stored = part as Part | StoredPart
  return stored.kind === 'stored' ? stored.hash : undefined
}

function eachPart(record: Holder, see: (part: Part) => void): void {
  const seeAll = (parts: Part[] | undefined) => parts?.forEach((part) => see(part))
  for (const message of record.history) seeAll(message.parts)
  for (const artifact of record.artifacts) seeAll(artifact.parts)
  for (const event of record.events) if (event.kind === 'status-update') seeAll(event.status.message?.parts)
  seeAll(record.status.message?.parts)
  for (const { artifacts } of record.foreignReferences ?? [])
    for (const artifact of artifacts) seeAll(artifact.parts)
}

function mapParts<T extends Holder>(record: T, map: (part: Part) => Part): T {
  const mapped = <P extends { parts: Part[] }>(holder: P): P => ({ ...holder, parts: holder.parts.map(map) })
  const mapStatus = <S extends { message?: Message }>(status: S): S =>
    status.message === undefined ? status : { ...status, message: mapped(status.message) }
  return {
    ...record,
    history: record.history.map(mapped),
    artifacts: record.artifacts.map(mapped),
    events: record.events.map((event) =>
      event.kind === 'status-update' ? { ...event, status: mapStatus(event.status) } : event,
    ),
    status: mapStatus(record.status),
    ...(record.foreignReferences !== undefined && {
      foreignReferences: record.foreignReferences.map((task) => ({
        ...task,
        artifacts: task.artifacts.map(mapped),
      })),
    }),
  }
}

/** Whether the value's JSON is longer than `limit`, ignoring escapes. Stops counting at the limit. */
export function isLongerThan(value: unknown, limit: number): boolean {
  let length = 0
  const waiting: unknown[] = [value]
  while (waiting.length > 0 && length <= limit) {
    const next = waiting.pop()
    length += typeof next === 'string' ? next.length + 3 : 5
    if (typeof next !== 'object' || next === null) continue
    for (const [key, inner] of Object.entries(next)) {
      length += key.length + 4
      waiting.push(inner)
    }
  }
  return length > limit
}
