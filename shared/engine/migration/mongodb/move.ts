import { insertMissing, insertUnlessThere } from '@parley/kit/database/mongodb/database'
import { agentIndexes, agentMigrations, prepareSchema } from '@parley/kit/database/mongodb/schema'
import { BSON, type Collection, type Db } from 'mongodb'
import { refuseUnfinishedImport } from '../../store/mongodb/import.ts'
import { type OwnDatabase, ownDatabases } from '../../store/mongodb/own-database.ts'
import { Checksum } from '../checksum.ts'
import { MigrationFailed } from '../copy.ts'

export interface MoveOptions {
  agentId: string
  /** The gateway's database, which contained the data of all agents in earlier versions. */
  from: Db
  /** The agent's own database. */
  to: Db
  /** Checked before each write. After an abort, the next call continues. */
  signal: AbortSignal
  /** Called before each step, with the number of documents that it concerns. */
  onStep?: (step: 'copy' | 'verify' | 'remove', documents: number) => void | Promise<void>
}

/** Limits of a batch, and the number of attempts to copy data that another process changes. */
const [batchDocuments, batchBytes, attempts] = [500, 8 * 1024 * 1024, 3]
/** They describe a database instead of the data of an agent. */
const notMoved = new Set(['imports', 'schema', 'agent_databases'])

interface AnyDocument {
  _id: string
  agent_id: string
}

/** Returns the name of the agent's database, which stays the one of the first call. */
export async function assignDatabase(
  from: Db,
  { agentId, name, database }: { agentId: string; name: string; database: string },
): Promise<OwnDatabase> {
  const ours = { _id: agentId, agent_id: agentId }
  const first: OwnDatabase = { ...ours, name, database, state: 'moving' }
  const known = await ownDatabases(from).findOne(ours)
  if (known !== null) return known
  if (await insertUnlessThere(ownDatabases(from), first)) return first
  return (await ownDatabases(from).findOne(ours)) ?? first
}

/** Whether the gateway's database contains data of the agent. */
export async function holdsData(from: Db, agentId: string): Promise<boolean> {
  for (const collection of await collectionsOf(from))
    if ((await collection.findOne(rangeOf(agentId), { projection: { _id: 1 } })) !== null) return true
  return false
}

/**
 * Returns what each process of the agent changes once a second in its store, also processes of earlier versions: the time
 * of the last ping, or the newest lease of a task.
 */
export async function signOfLife(from: Db, agentId: string): Promise<string> {
  const settings = from.collection<AnyDocument & { at?: number }>('settings')
  const ping = await settings.findOne({ _id: `${agentId}/ping`, agent_id: agentId })
  const isHeld = {
    agent_id: agentId,
    state: { $in: ['submitted', 'working'] },
    lease_until: { $exists: true },
  }
  const tasks = from.collection<AnyDocument & { lease_until?: number }>('tasks')
  const [newest] = await tasks
    .find(isHeld, { projection: { lease_until: 1 } })
    .sort({ lease_until: -1 })
    .limit(1)
    .toArray()
  return `${ping?.at} ${newest?.lease_until}`
}

/**
 * Moves all documents of an agent into its own database: copies and verifies them, and then removes the originals. Until
 * then, no agent can open the new database. Later calls move what a process of an earlier version has written since.
 * The agent must not run, and only one call at a time may move it.
 * @returns the number of moved documents
 * @throws MigrationFailed if the copy differs from the original, DatabaseRefused, and the reason of the signal
 */
export async function moveAgent(options: MoveOptions): Promise<number> {
  const { agentId, from, to, signal } = options
  const ours = { _id: agentId, agent_id: agentId }
  const known = await ownDatabases(from).findOne(ours)
  if (known === null) throw new Error('No database is assigned to the agent yet')
  await refuseUnfinishedImport(from, agentId)
  const isMoved = known.state === 'moved'
  if (!isMoved) {
    const { _id, ...rest } = { ...known, state: 'moving' as const }
    signal.throwIfAborted()
    await ownDatabases(to).replaceOne(ours, rest, { upsert: true })
  }
  if (known.state === 'moving') {
    await prepareSchema(to, 'agent_store', { indexes: agentIndexes, migrations: agentMigrations })
    await copyAll(options)
    signal.throwIfAborted()
    await ownDatabases(from).updateOne(ours, { $set: { state: 'verified' } })
  }
  const removed = await removeMoved(options)
  if (isMoved) return removed
  signal.throwIfAborted()
  await ownDatabases(to).deleteOne(ours)
  await ownDatabases(from).updateOne(ours, { $set: { state: 'moved' } })
  return removed
}

async function copyAll(options: MoveOptions): Promise<void> {
  const { agentId, from, to, signal, onStep } = options
  for (let attempt = 1; ; attempt += 1) {
    for (const collection of await collectionsOf(from)) {
      await onStep?.('copy', await collection.countDocuments(rangeOf(agentId)))
      for await (const batch of batchesOf(collection, agentId)) {
        signal.throwIfAborted()
        await insertMissing(to.collection<AnyDocument>(collection.collectionName), batch)
      }
    }
    const differs = await differing(options)
    if (differs === undefined) return
    const { collectionName: name } = differs
    if (attempt === attempts)
      throw new MigrationFailed(
        `The copy of ${from.databaseName}.${name} in ${to.databaseName} differs from the original. Another process of this agent may still run on ${from.databaseName}: stop it.`,
      )
    // Nothing else has written there, so the collection is copied again.
    signal.throwIfAborted()
    await to.collection<AnyDocument>(name).deleteMany(rangeOf(agentId))
  }
}

/** Returns the first collection of which the copy differs. */
async function differing({
  agentId,
  from,
  to,
  signal,
  onStep,
}: MoveOptions): Promise<Collection<AnyDocument> | undefined> {
  const names = new Set([...(await collectionsOf(from)), ...(await collectionsOf(to))].map(nameOf))
  for (const name of names) {
    const [original, copy] = [from, to].map((db) => db.collection<AnyDocument>(name))
    if (original === undefined || copy === undefined) continue
    const [wanted, found] = await Promise.all([checksumOf(original, agentId), checksumOf(copy, agentId)])
    signal.throwIfAborted()
    await onStep?.('verify', wanted.count)
    if (wanted.count !== found.count || wanted.text !== found.text) return original
  }
  return undefined
}

async function checksumOf(collection: Collection<AnyDocument>, agentId: string): Promise<Checksum> {
  const checksum = new Checksum()
  const found = collection.find(rangeOf(agentId), { promoteBuffers: true, batchSize: batchDocuments })
  for await (const document of found) checksum.add(document)
  return checksum
}

/** Removes the originals, after it has copied those that are not in the agent's database. */
async function removeMoved({ agentId, from, to, signal, onStep }: MoveOptions): Promise<number> {
  let removed = 0
  for (const collection of await collectionsOf(from)) {
    const copies = to.collection<AnyDocument>(collection.collectionName)
    for await (const batch of batchesOf(collection, agentId)) {
      await onStep?.('remove', batch.length)
      const ids = { _id: { $in: batch.map(({ _id }) => _id) }, agent_id: agentId }
      const there = await copies.find(ids, { projection: { _id: 1 } }).toArray()
      const copied = new Set(there.map(({ _id }) => _id))
      signal.throwIfAborted()
      await insertMissing(
        copies,
        batch.filter(({ _id }) => !copied.has(_id)),
      )
      signal.throwIfAborted()
      removed += (await collection.deleteMany(ids)).deletedCount
    }
  }
  return removed
}

async function collectionsOf(db: Db): Promise<Collection<AnyDocument>[]> {
  const all = await db.listCollections({}, { nameOnly: true }).toArray()
  const names = all
    .map(({ name }) => name)
    .filter((name) => !notMoved.has(name) && !name.startsWith('system.'))
  return names.sort().map((name) => db.collection<AnyDocument>(name))
}

const nameOf = ({ collectionName }: Collection<AnyDocument>) => collectionName

/** Selects a range of `_id`, because every collection has an index on it. */
const rangeOf = (agentId: string) => ({ _id: { $gte: `${agentId}/`, $lt: `${agentId}0` }, agent_id: agentId })

/** Reads the documents of the agent with their types, so that a copy has the same. */
async function* batchesOf(
  collection: Collection<AnyDocument>,
  agentId: string,
): AsyncGenerator<AnyDocument[]> {
  let batch: AnyDocument[] = []
  let bytes = 0
  const found = collection.find(rangeOf(agentId), { promoteValues: false, batchSize: batchDocuments })
  for await (const document of found) {
    batch.push(document)
    bytes += BSON.calculateObjectSize(document)
    if (batch.length < batchDocuments && bytes < batchBytes) continue
    yield batch
    ;[batch, bytes] = [[], 0]
  }
  if (batch.length > 0) yield batch
}
