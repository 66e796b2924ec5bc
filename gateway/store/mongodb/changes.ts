import { randomUUID } from 'node:crypto'
import type { Collection, Filter } from 'mongodb'
import { gatewayScope } from './database.ts'

/** Fields of a document whose changes are tracked. The index for them is `{ agent_id: 1, changed_at: 1 }`. */
export interface Changing {
  _id: string
  agent_id: string
  /** An identifier that is new after each change. */
  stamp: string
  /** The server time of the change. */
  changed_at: Date
}

/** Returns the stamp and time to set with each change. */
export const changed = () => ({ stamp: randomUUID(), at: { changed_at: true } as const })

/** Maximum delay between the server time of a change and its visibility. */
const overlapMs = 10_000
const readAtOnce = 500

/**
 * Polls for changes on servers without change streams. It reads the newest stamps by server time and then the documents
 * with unknown stamps. A removed document must be kept as a tombstone for some time. If all stamps are tracked, a
 * thorough poll also detects missing documents.
 */
export class Changes<T extends Changing> {
  readonly #all: Collection<T>
  readonly #few: boolean
  #newest = 0
  /** The stamps of recently changed documents. */
  #known = new Map<string, { stamp: string; at: number }>()
  #missed: string[] = []

  /**
   * @param few whether the collection is small enough to track all stamps, so that even a thorough poll reads only the
   * documents that changed
   */
  constructor(all: Collection<T>, few = false) {
    this.#all = all
    this.#few = few
  }

  /** Records documents that the caller already has. */
  saw(documents: readonly Pick<T, '_id' | 'stamp' | 'changed_at'>[]): void {
    for (const { _id, stamp, changed_at: at } of documents) {
      this.#newest = Math.max(this.#newest, at.getTime())
      this.#known.set(_id, { stamp, at: at.getTime() })
    }
    if (this.#few) return
    for (const [id, { at }] of this.#known) if (at < this.#newest - overlapMs) this.#known.delete(id)
  }

  /** Returns the ids of known documents that the last thorough poll did not find. */
  async gone(): Promise<string[]> {
    const gone: string[] = []
    for (let from = 0; from < this.#missed.length; from += readAtOnce) {
      const some = this.#missed.slice(from, from + readAtOnce)
      // A full read can miss a document that changes during the read.
      const asked = { _id: { $in: some }, agent_id: gatewayScope } as unknown as Filter<T>
      const found = await this.#all.find(asked).project<{ _id: string }>({ _id: 1 }).toArray()
      const there = new Set(found.map(({ _id }) => _id))
      gone.push(...some.filter((id) => !there.has(id)))
    }
    this.#missed = []
    for (const id of gone) this.#known.delete(id)
    return gone
  }

  /** Returns the changed documents. @param all whether to compare all documents, not only recently changed ones */
  async next(all = false): Promise<T[]> {
    const since = new Date(all ? 0 : this.#newest - overlapMs)
    const lately = { agent_id: gatewayScope, changed_at: { $gt: since } } as Filter<T>
    const stamps = await this.#all
      .find(lately)
      .project<Pick<T, '_id' | 'stamp' | 'changed_at'>>({ stamp: 1, changed_at: 1 })
      .toArray()
    if (all) {
      const there = new Set(stamps.map(({ _id }) => _id))
      this.#missed = [...this.#known.keys()].filter((id) => !there.has(id))
    }
    const other = stamps.filter(({ _id, stamp }) => this.#known.get(_id)?.stamp !== stamp)
    const found: T[] = []
    for (let from = 0; from < other.length; from += readAtOnce) {
      const _id = { $in: other.slice(from, from + readAtOnce).map((one) => one._id) }
      found.push(...((await this.#all.find({ _id, agent_id: gatewayScope } as Filter<T>).toArray()) as T[]))
    }
    this.saw(found)
    return found
  }
}
