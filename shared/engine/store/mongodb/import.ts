import { DatabaseRefused } from '@parley/kit/database/errors'
import { connectMongodb, insertMissing } from '@parley/kit/database/mongodb/database'
import { mongodbDocuments } from '@parley/kit/database/mongodb/documents'
import { type Index, knownVersion, type Migration, prepareSchema } from '@parley/kit/database/mongodb/schema'
import type { Collection, Db } from 'mongodb'
import { LargeParts } from '../large-parts.ts'
import { storeBatches } from './batches.ts'
import type { BesideTasks, MongoContext, PartDocument } from './record.ts'
import { saveParts } from './record.ts'

/** A document of any collection. */
export interface AnyDocument {
  _id: string
  agent_id: string
  [field: string]: unknown
}

/** Position in a table, given by the key of the last copied row. */
export type Place = (string | number | Uint8Array)[]

/** Progress of an import, stored in the target so that an interrupted import can continue. */
interface ImportDocument {
  _id: string
  agent_id: string
  state: 'running' | 'done'
  /** Position for each kind of data; `true` if it was copied completely. */
  places: Record<string, Place | true>
  begun_at: Date
  done_at?: Date
}

export interface ImportTarget extends AsyncDisposable {
  readonly store: MongoContext
  /** Returns `none` if no import was started. */
  state(): Promise<'none' | 'running' | 'done'>
  /** Whether any of the collections contains documents of this scope. */
  holdsAny(collections: readonly string[]): Promise<boolean>
  /** Creates the schema and marks the data as incomplete. With `afresh`, existing documents are removed. */
  begin(collections: readonly string[], afresh: boolean): Promise<void>
  place(kind: string): Promise<Place | true | undefined>
  /** Inserts the missing documents. */
  add(documents: Map<string, AnyDocument[]>): Promise<void>
  reached(kind: string, place: Place | true): Promise<void>
  /** Returns all documents of this scope. */
  read(collection: string): AsyncIterable<AnyDocument>
  /** Marks the data as complete, so that servers can use it. */
  finish(): Promise<void>
}

export interface ImportTargetOptions {
  url: string
  /** The `agent_id` of every imported document. */
  scope: string
  schema: { name: string; indexes: Record<string, Index[]>; migrations: readonly Migration[] }
}

const importsOf = (db: Db) => db.collection<ImportDocument>('imports')

/**
 * Opens a database for an import from an embedded store. Nothing is written before `begin`.
 * @throws DatabaseRefused if `connectMongodb` throws it, or a newer version wrote the database
 */
export async function openImportTarget(options: ImportTargetOptions): Promise<ImportTarget> {
  await using stack = new AsyncDisposableStack()
  const { scope, schema } = options
  const { db } = stack.use(await connectMongodb({ url: options.url, poolMax: 8 }))
  await knownVersion(db, schema.name, schema.migrations.length)
  const [imports, key] = [importsOf(db), { _id: scope, agent_id: scope }]
  const store = contextFor(db, scope)
  const all = (name: string) => db.collection<AnyDocument>(name)
  // Selects a range of `_id`, because every collection has an index on it.
  const ours = { _id: { $gte: `${scope}/`, $lt: `${scope}0` }, agent_id: scope }
  const open = stack.move()
  return {
    store,
    state: async () => (await imports.findOne(key))?.state ?? 'none',
    holdsAny: async (collections) => {
      for (const name of collections) if ((await all(name).findOne(ours)) !== null) return true
      return false
    },
    begin: async (collections, afresh) => {
      await prepareSchema(db, schema.name, schema)
      const running = { state: 'running' as const, begun_at: new Date(), places: {} }
      const there = await imports.findOne(key)
      if (there !== null && !afresh) return
      await imports.replaceOne(key, { ...key, ...running }, { upsert: true })
      for (const name of collections) await all(name).deleteMany(ours)
    },
    place: async (kind) => placeIn((await imports.findOne(key))?.places[kind]),
    add: async (documents) => {
      for (const [name, some] of documents) {
        if (name === 'parts') await saveParts(store, some as unknown as PartDocument[])
        else await insertMissing(all(name), some)
      }
    },
    reached: async (kind, place) =>
      void (await imports.updateOne(key, { $set: { [`places.${kind}`]: place } })),
    read: (name) => all(name).find(ours, { promoteBuffers: true, batchSize: 500 }),
    finish: async () => void (await imports.updateOne(key, { $set: { state: 'done', done_at: new Date() } })),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/**
 * @throws DatabaseRefused while an import is incomplete
 */
export async function refuseUnfinishedImport(db: Db, scope: string): Promise<void> {
  if ((await importsOf(db).findOne({ _id: scope, agent_id: scope }))?.state !== 'running') return
  throw new DatabaseRefused(
    `A migration into the database ${db.databaseName} is not finished. Run npx parley migrate again to its end, or name ` +
      'another database in STORE_URL.',
  )
}

/** The driver returns bytes as `Binary`. */
function placeIn(place: Place | true | undefined): Place | true | undefined {
  if (place === undefined || place === true) return place
  return place.map((value) => {
    const bytes = (value as { buffer?: Uint8Array }).buffer
    return typeof value === 'object' && !(value instanceof Uint8Array) && bytes !== undefined ? bytes : value
  })
}

/** Returns a context that can encode documents but does not support lists. */
function contextFor(db: Db, agentId: string): MongoContext {
  return {
    agentId,
    tasks: db.collection('tasks'),
    contexts: db.collection('contexts'),
    batches: storeBatches(db),
    parts: db.collection('parts'),
    documents: mongodbDocuments(db, agentId),
    beside: ((name: string): Collection => db.collection(name)) as unknown as BesideTasks,
    largeParts: new LargeParts(256 * 1024),
    get cursors(): never {
      throw new Error('There are no cursors while data are taken over')
    },
    now: Date.now,
    joined: new Set(),
  }
}
