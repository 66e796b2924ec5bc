import { randomUUID } from 'node:crypto'
import type { Collection, Filter } from 'mongodb'
import { gatewayScope } from './database.ts'

/** What a document has whose changes other gateways hear of; its index is `{ agent_id: 1, changed_at: 1 }`. */
export interface Changing {
  _id: string
  agent_id: string
  /** Another one after each change. */
  stamp: string
  /** By the clock of the server. */
  changed_at: Date
}

/** To be part of each change. */
export const changed = () => ({ stamp: randomUUID(), at: { changed_at: true } as const })

/** A change may be seen so much later than the server's clock says of it. */
const overlapMs = 10_000
const readAtOnce = 500

/**
 * What anybody changed since it was asked last, the cheap way for a server without change streams: the newest stamps by the
 * server's clock, and of those that are new the documents. What is removed must stay for a while as a mark; where all stamps
 * are kept in mind, a thorough look misses it later too.
 */
export class Changes<T extends Changing> {
  readonly #all: Collection<T>
  readonly #few: boolean
  #newest = 0
  /** Stamps of those that were changed lately. */
  #known = new Map<string, { stamp: string; at: number }>()
  #missed: string[] = []

  /** @param few they are so few that the stamps of all can be kept in mind: a thorough look then reads what changed alone */
  constructor(all: Collection<T>, few = false) {
    this.#all = all
    this.#few = few
  }

  /** These are known. */
  saw(documents: readonly Pick<T, '_id' | 'stamp' | 'changed_at'>[]): void {
    for (const { _id, stamp, changed_at: at } of documents) {
      this.#newest = Math.max(this.#newest, at.getTime())
      this.#known.set(_id, { stamp, at: at.getTime() })
    }
    if (this.#few) return
    for (const [id, { at }] of this.#known) if (at < this.#newest - overlapMs) this.#known.delete(id)
  }

  /** Ids of those that are known, and that the last thorough look did not meet: they are no longer there. */
  async gone(): Promise<string[]> {
    const gone: string[] = []
    for (let from = 0; from < this.#missed.length; from += readAtOnce) {
      const some = this.#missed.slice(from, from + readAtOnce)
      // Reading them all may pass over one that is changed meanwhile.
      const asked = { _id: { $in: some }, agent_id: gatewayScope } as unknown as Filter<T>
      const found = await this.#all.find(asked).project<{ _id: string }>({ _id: 1 }).toArray()
      const there = new Set(found.map(({ _id }) => _id))
      gone.push(...some.filter((id) => !there.has(id)))
    }
    this.#missed = []
    for (const id of gone) this.#known.delete(id)
    return gone
  }

  /** @param all whether to compare them all, rather than those that were changed lately */
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
