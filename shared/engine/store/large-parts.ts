import { hash } from 'node:crypto'
import type { LazyPart } from '@parley/wire/codecs/lazy-part'
import type { Message, Part } from '@parley/wire/model/task'
import type { TaskRecord } from './store.ts'

/** The fields of a task with parts, in the record and in the stored body. */
type Holder = Pick<TaskRecord, 'history' | 'artifacts' | 'events' | 'status' | 'foreignReferences'>

/** Reference in the stored body to a part that is stored separately. Parts of callers and handlers never have this kind. */
interface StoredPart {
  kind: 'stored'
  hash: string
}

/** A part that is stored separately. Its JSON is built on demand: most commits find the part stored already. */
export interface LargePart {
  /** SHA-256 of its JSON. */
  hash: string
  json: () => string
}

/**
 * Separates parts larger than `largePartBytes` (measured in characters of JSON, approximately) from a record. A part is
 * named by its content, so that the same part in the history and in an artifact is stored once and not written again by
 * later commits.
 */
export class LargeParts {
  readonly #largePartBytes: number
  /** Hashing 30 MB takes 30 ms, and each commit of a task has the same part objects. */
  readonly #known = new WeakMap<Part, { strings: Strings; hash: string }>()

  constructor(largePartBytes: number) {
    this.#largePartBytes = largePartBytes
  }

  /** The record with references in place of large parts, and the large parts. Does not change the record. */
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

  /** The record with its large parts. `load` returns the JSON of a hash. */
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

  /** The record with a lazy part in place of each large one. `lazy` returns it for a hash. */
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

/** The content of a part that has only strings, which cannot be modified in place as an object could. */
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

/** Whether the JSON of the value is longer than `limit`, approximately (escapes are not counted). Stops as soon as it is. */
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
