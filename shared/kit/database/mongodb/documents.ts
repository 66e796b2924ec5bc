import { nowMicros } from '@parley/wire/model/timestamp'
import type { Collection, Db, Filter } from 'mongodb'
import {
  type AnyCollection,
  type AnyConditions,
  type AnyDocuments,
  type AnyFound,
  type AnyQuery,
  type AnyRow,
  type DocumentDatabase,
  documentDatabase,
  type Value,
  type Written,
} from '../documents.ts'
import { untilDone } from '../retry.ts'
import { insertUnlessThere, isDuplicate } from './database.ts'
import { Layout, type StoredDocument } from './layout.ts'
import { UniqueValues } from './unique-values.ts'

/** How often each process removes expired documents at most, and how many it removes at a time. */
const [removeEveryMs, removedAtOnce] = [10_000, 10_000]
/** A quota is checked again after an insert: a process that finds too many removes its own document and retries. */
const triesForQuota = 3

/** Opens the collections of one scope of a database. @param now returns milliseconds since 1970 */
export function mongodbDocuments(db: Db, scope: string, now: () => number = Date.now): DocumentDatabase {
  return documentDatabase((declaration) => new DocumentCollection({ db, scope, declaration, now }))
}

interface CollectionOptions {
  db: Db
  scope: string
  declaration: AnyCollection
  now: () => number
}

class DocumentCollection implements AnyDocuments {
  readonly #declaration: AnyCollection
  readonly #layout: Layout
  readonly #all: Collection<StoredDocument>
  readonly #unique: UniqueValues | undefined
  #removedAt = Number.NEGATIVE_INFINITY

  constructor({ db, scope, declaration, now }: CollectionOptions) {
    this.#declaration = declaration
    this.#layout = new Layout(scope, declaration)
    this.#all = db.collection(declaration.name)
    const claims = declaration.mongodb?.claims
    this.#unique =
      claims &&
      new UniqueValues({
        claims: db.collection(claims.collection),
        rows: this.#all,
        prefixes: claims.prefixes,
        scope,
        now,
      })
  }

  async get(key: AnyRow, where: AnyConditions = {}): Promise<AnyFound | undefined> {
    const filter = { ...this.#layout.filterOf(where), ...this.#layout.keyOf(key) }
    return this.#found(await this.#all.findOne(filter))
  }

  async insert(
    row: AnyRow,
    options: { over?: AnyConditions; removeExpiredAt?: number } = {},
  ): Promise<Written> {
    const { over, removeExpiredAt } = options
    if (removeExpiredAt !== undefined) await this.#removeExpired(removeExpiredAt)
    const document = this.#layout.documentOf(row, nowMicros())
    if (over === undefined) return this.#insert(document)
    const filter = { ...this.#layout.filterOf(over), ...this.#layout.keyOf(row) }
    try {
      const change = changeOf(this.#layout.changeOf(this.#layout.wholeOf(row)))
      const { matchedCount, upsertedCount } = await this.#all.updateOne(filter, change, { upsert: true })
      return matchedCount + upsertedCount === 1 ? 'written' : 'refused'
    } catch (error) {
      if (isDuplicate(error)) return 'refused'
      throw error
    }
  }

  put(row: AnyRow, quota?: { index: string; equals: AnyConditions; max: number }): Promise<Written> {
    const key = this.#layout.keyOf(row)
    const { sequence } = this.#declaration.mongodb ?? {}
    const whole = this.#layout.changeOf(this.#layout.wholeOf(row))
    Object.assign(whole.$set, this.#layout.derivedOf(row))
    const document = this.#layout.documentOf(row, nowMicros())
    if (sequence !== undefined) whole.$set[sequence] = Number(document[sequence])
    const change = changeOf(whole)
    return untilDone(async (attempt): Promise<Written | undefined> => {
      if (quota === undefined) return this.#upsert(key, change)
      if ((await this.#all.updateOne(key, change)).matchedCount === 1) return 'written'
      const count = () => this.count(quota.index, quota.equals)
      if ((await count()) >= quota.max) return 'refused'
      if (!(await insertUnlessThere(this.#all, document))) return undefined
      if ((await count()) <= quota.max) return 'written'
      await this.#all.deleteOne({ ...key, ...(sequence !== undefined && { [sequence]: document[sequence] }) })
      return attempt < triesForQuota ? undefined : 'refused'
    })
  }

  async update(key: AnyRow, set: AnyRow, where: AnyConditions = {}): Promise<Written> {
    const filter = { ...this.#layout.filterOf(where), ...this.#layout.keyOf(key) }
    const change = changeOf(this.#layout.changeOf(set))
    if (this.#unique === undefined) {
      return (await this.#all.updateOne(filter, change)).matchedCount === 1 ? 'written' : 'refused'
    }
    const there = await this.#all.findOne(filter)
    if (there === null) return 'refused'
    const after = changed(there, change)
    const taken = await this.#unique.take(after, there)
    if ('taken' in taken) return taken
    if ((await this.#all.updateOne(filter, change)).matchedCount === 0) {
      await this.#unique.release(after, taken.fields)
      return 'refused'
    }
    const lost = await this.#unique.lost(after, taken.fields)
    if (lost === undefined) {
      await this.#unique.releaseUnused(there, after)
      return 'written'
    }
    await this.#restore(there, after)
    await this.#unique.release(after, taken.fields)
    return lost
  }

  async remove(key: AnyRow, where: AnyConditions = {}): Promise<AnyFound | undefined> {
    const removed = await this.#remove({ ...this.#layout.filterOf(where), ...this.#layout.keyOf(key) })
    return this.#found(removed)
  }

  async find(index: string, equals: AnyConditions, query: AnyQuery = {}): Promise<AnyFound[]> {
    return (await this.#documents(index, equals, query)).map((document) => this.#layout.rowOf(document))
  }

  async page(
    index: string,
    equals: AnyConditions,
    query: { after?: number; limit: number; where?: AnyConditions },
  ): Promise<{ items: AnyFound[]; next?: number }> {
    const { limit } = query
    const found = await this.#documents(index, equals, { after: 0, ...query, limit: limit + 1 })
    const page = found.slice(0, limit)
    const items = page.map((document) => this.#layout.rowOf(document))
    const [last, following] = [items.at(-1), found[limit]]
    if (last === undefined || following === undefined) return { items }
    const next = last.sequence
    if (this.#layout.rowOf(following).sequence === next) {
      // Two processes may insert in the same microsecond, and a cursor cannot point between their documents.
      const listed = page.filter((one) => this.#layout.rowOf(one).sequence === next).map(({ _id }) => _id)
      const { where = {} } = query
      const { filter, order = '' } = this.#layout.queryOf(index, equals, { where })
      const tied = await this.#all.find({ ...filter, [order]: next, _id: { $nin: listed } }).toArray()
      items.push(...tied.map((document) => this.#layout.rowOf(document)))
    }
    return { items, next }
  }

  count(index: string, equals: AnyConditions): Promise<number> {
    return this.#all.countDocuments(this.#layout.queryOf(index, equals, {}).filter)
  }

  async removeMany(index: string, equals: AnyConditions, query: AnyQuery = {}): Promise<number> {
    const { filter } = this.#layout.queryOf(index, equals, query)
    if (this.#unique !== undefined) {
      const { version } = this.#declaration.unique ?? {}
      let removed = 0
      for (const { _id, agent_id, ...rest } of await this.#documents(index, equals, query)) {
        const same = { _id, agent_id, ...(version !== undefined && { [version]: rest[version] }) }
        if ((await this.#remove(same)) !== null) removed += 1
      }
      return removed
    }
    if (query.limit === undefined) return (await this.#all.deleteMany(filter)).deletedCount
    const found = await this.#documents(index, equals, query, { _id: 1 })
    if (found.length === 0) return 0
    const ids = { _id: { $in: found.map(({ _id }) => _id) } }
    return (await this.#all.deleteMany({ ...filter, ...ids })).deletedCount
  }

  #documents(
    index: string,
    equals: AnyConditions,
    query: AnyQuery,
    projection?: Record<string, 1>,
  ): Promise<StoredDocument[]> {
    const { filter, order } = this.#layout.queryOf(index, equals, query)
    let cursor = this.#all.find(filter, projection === undefined ? {} : { projection })
    if (order !== undefined) cursor = cursor.sort({ [order]: query.descending ? -1 : 1 })
    if (query.limit !== undefined) cursor = cursor.limit(query.limit)
    return cursor.toArray()
  }

  async #insert(document: StoredDocument): Promise<Written> {
    if (this.#unique === undefined)
      return (await insertUnlessThere(this.#all, document)) ? 'written' : 'refused'
    const taken = await this.#unique.take(document)
    if ('taken' in taken) return taken
    if (!(await insertUnlessThere(this.#all, document))) {
      await this.#unique.release(document, taken.fields)
      return 'refused'
    }
    const lost = await this.#unique.lost(document, taken.fields)
    if (lost === undefined) return 'written'
    const { version } = this.#declaration.unique ?? {}
    const { _id, agent_id } = document
    await this.#all.deleteOne({
      _id,
      agent_id,
      ...(version !== undefined && { [version]: document[version] }),
    })
    await this.#unique.release(document, taken.fields)
    return lost
  }

  async #upsert(
    key: { _id: string; agent_id: string },
    change: ReturnType<typeof changeOf>,
  ): Promise<'written' | undefined> {
    try {
      await this.#all.updateOne(key, change, { upsert: true })
      return 'written'
    } catch (error) {
      // Two processes inserted the document concurrently: the second one replaces it.
      if (isDuplicate(error)) return undefined
      throw error
    }
  }

  async #remove(filter: Filter<StoredDocument>): Promise<StoredDocument | null> {
    const removed = await this.#all.findOneAndDelete(filter)
    if (removed !== null) await this.#unique?.releaseUnused(removed)
    return removed
  }

  /** Restores the document with a new version, so that a process that read the update cannot continue from it. */
  async #restore(before: StoredDocument, after: StoredDocument): Promise<void> {
    const { version = '' } = this.#declaration.unique ?? {}
    const { _id, agent_id } = after
    const { _id: _key, ...rest } = before
    await this.#all.replaceOne({ _id, agent_id, [version]: after[version] }, {
      ...rest,
      [version]: Number(after[version]) + 1,
    } as unknown as StoredDocument)
  }

  async #removeExpired(now: number): Promise<void> {
    const { expires } = this.#declaration
    if (expires === undefined || performance.now() - this.#removedAt < removeEveryMs) return
    this.#removedAt = performance.now()
    await this.removeMany(expires.index, {}, { atMost: now, limit: removedAtOnce })
  }

  #found(document: StoredDocument | null): AnyFound | undefined {
    return document === null ? undefined : this.#layout.rowOf(document)
  }
}

function changeOf({ $set, gone }: { $set: Record<string, Value>; gone: string[] }) {
  const $unset = Object.fromEntries(gone.map((field) => [field, '' as const]))
  return gone.length === 0 ? { $set } : { ...(Object.keys($set).length > 0 && { $set }), $unset }
}

function changed(before: StoredDocument, change: ReturnType<typeof changeOf>): StoredDocument {
  const gone = '$unset' in change ? Object.keys(change.$unset) : []
  const kept = Object.fromEntries(Object.entries(before).filter(([field]) => !gone.includes(field)))
  return { ...kept, ...change.$set, _id: before._id, agent_id: before.agent_id }
}
