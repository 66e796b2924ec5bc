import type { AnyBulkWriteOperation, CreateIndexesOptions, Db, IndexSpecification } from 'mongodb'
import { DatabaseRefused } from '../errors.ts'
import { positionOf } from '../keys.ts'
import { untilDone } from '../retry.ts'
import { insertUnlessThere, unlessConflict } from './database.ts'

/** An index, named after the query that uses it. */
export interface Index {
  name: string
  key: Record<string, 1 | -1>
  /** Restricts the index to documents with this field. */
  having?: string
  /** No two documents have the same key. */
  unique?: true
}

/**
 * The indexes of an agent's store. `_id` begins with the agent's id and is the only unique key, so that an insert
 * decides which of two writers comes first. Every query specifies `agent_id`. Callers' data is JSON in `body`, where
 * it cannot act as an operator; only values that are queried or change often are fields. `position` combines the
 * creation time and the id in one string, so that a page can continue after a single value.
 */
export const agentIndexes: Record<string, Index[]> = {
  tasks: [
    { name: 'tasks_of_owner', key: { agent_id: 1, owner: 1, position: -1 } },
    { name: 'tasks_of_owner_in_state', key: { agent_id: 1, owner: 1, state: 1, position: -1 } },
    { name: 'tasks_of_context', key: { agent_id: 1, owner: 1, context_id: 1, position: -1 } },
    {
      name: 'tasks_of_context_in_state',
      key: { agent_id: 1, owner: 1, context_id: 1, state: 1, position: -1 },
    },
    {
      name: 'tasks_by_status_of_owner',
      key: { agent_id: 1, owner: 1, state: 1, status_position: -1 },
    },
    {
      name: 'tasks_by_status_of_context',
      key: { agent_id: 1, owner: 1, context_id: 1, state: 1, status_position: -1 },
    },
    { name: 'tasks_in_state', key: { agent_id: 1, state: 1, position: 1 } },
    { name: 'tasks_due', key: { agent_id: 1, due_at: 1 }, having: 'due_at' },
    {
      name: 'tasks_ended_by_status',
      key: { agent_id: 1, state: 1, status_position: -1 },
      having: 'ended_at',
    },
  ],
  contexts: [{ name: 'contexts_of_owner', key: { agent_id: 1, owner: 1, position: -1 } }],
  parts: [{ name: 'parts_of_task', key: { agent_id: 1, task: 1 } }],
  feedback: [{ name: 'feedback_of_task', key: { agent_id: 1, task: 1 } }],
  idempotency_keys: [
    { name: 'keys_of_task', key: { agent_id: 1, task_id: 1 } },
    { name: 'keys_expired', key: { agent_id: 1, expires_at: 1 } },
  ],
  signatures: [{ name: 'signatures_expired', key: { agent_id: 1, until: 1 } }],
  push_configs: [
    { name: 'configs_of_task', key: { agent_id: 1, task: 1, registered: -1 } },
    { name: 'configs_open', key: { agent_id: 1, open: 1, registered: 1 }, having: 'open' },
    { name: 'configs_of_agent', key: { agent_id: 1, registered: -1 } },
  ],
  payments: [
    { name: 'payments_of_nonce', key: { agent_id: 1, nonce_key: 1 }, having: 'nonce_key' },
    { name: 'payments_of_purpose', key: { agent_id: 1, purpose: 1 }, having: 'purpose' },
    { name: 'payments_of_capture', key: { agent_id: 1, capture: 1 }, having: 'capture' },
    { name: 'payments_of_task', key: { agent_id: 1, task_id: 1, made: 1 }, having: 'task_id' },
    { name: 'payments_in_state', key: { agent_id: 1, state: 1, made: 1 } },
    { name: 'payments_of_owner_in_state', key: { agent_id: 1, state: 1, owner: 1 } },
    { name: 'payments_unpaid', key: { agent_id: 1, state: 1, updated_at: 1 } },
    { name: 'payments_due', key: { agent_id: 1, due_at: 1 }, having: 'due_at' },
  ],
  transfer_offers: [
    { name: 'transfer_offers_of_session', key: { agent_id: 1, session_id: 1 }, having: 'session_id' },
    { name: 'transfer_offers_of_owner', key: { agent_id: 1, network: 1, owner: 1 }, having: 'network' },
    { name: 'transfer_offers_by_block', key: { agent_id: 1, from_block: 1 }, having: 'from_block' },
  ],
  usage_days: [{ name: 'usage_of_day', key: { agent_id: 1, day: 1 } }],
  removals: [{ name: 'removals_left', key: { agent_id: 1, at: 1 } }],
}

export type Migration = (db: Db) => Promise<void>

/**
 * Migration n upgrades version n to n + 1. It may run again after a crash, and while an older process is running. A
 * released migration never changes.
 */
export const agentMigrations: readonly Migration[] = [async () => {}, addStatusPositions, replaceIndexOfEnded]

interface StoredTask {
  _id: string
  task_id: string
  version: number
  body: string
}

const tasksAtOnce = 200

/**
 * Adds the position in the order by status to the tasks of earlier versions. While processes of an earlier version still run,
 * the tasks that they change keep their earlier position until the next change.
 */
async function addStatusPositions(db: Db): Promise<void> {
  const tasks = db.collection<StoredTask>('tasks')
  const missing = { status_position: { $exists: false } }
  let updates: AnyBulkWriteOperation<StoredTask>[] = []
  const write = async () => {
    if (updates.length > 0) await tasks.bulkWrite(updates, { ordered: false })
    updates = []
  }
  for await (const task of tasks.find(missing).project<StoredTask>({ task_id: 1, version: 1, body: 1 })) {
    const { _id, task_id: id, version } = task
    const { status }: { status: { timestamp: string } } = JSON.parse(task.body)
    const $set = { status_position: positionOf(status.timestamp, id) }
    updates.push({ updateOne: { filter: { _id, version, ...missing }, update: { $set } } })
    if (updates.length >= tasksAtOnce) await write()
  }
  await write()
}

/** Removes the index that `tasks_ended_by_status` replaces. */
async function replaceIndexOfEnded(db: Db): Promise<void> {
  const there = await indexNames(db, 'tasks')
  if (!there.some(({ name }) => name === 'tasks_ended')) return
  // Another process may have removed it.
  await db
    .collection('tasks')
    .dropIndex('tasks_ended')
    .catch(async (error: unknown) => {
      if ((await indexNames(db, 'tasks')).some(({ name }) => name === 'tasks_ended')) throw error
    })
}

interface SchemaDocument {
  _id: string
  version: number
}

/**
 * Creates missing indexes and runs pending migrations, unless a newer version wrote the database. Several processes
 * may do this concurrently.
 * @param name the name of the schema, because a database has several
 * @throws DatabaseRefused
 */
export async function prepareSchema(
  db: Db,
  name: string,
  { indexes, migrations }: { indexes: Record<string, Index[]>; migrations: readonly Migration[] },
): Promise<void> {
  const schema = db.collection<SchemaDocument>('schema')
  const found = await knownVersion(db, name, migrations.length)
  const version = found ?? 0
  if (found === undefined) await insertUnlessThere(schema, { _id: name, version: 0 })
  for (const [collection, wanted] of Object.entries(indexes)) await makeIndexes(db, collection, wanted)
  for (const [offset, migrate] of migrations.slice(version).entries()) {
    await migrate(db)
    // Another process may have run the same migration.
    const at = version + offset
    await schema.updateOne({ _id: name, version: at }, { $set: { version: at + 1 } })
  }
}

/**
 * Returns the schema version of the database; undefined for a new database.
 * @throws DatabaseRefused if the version is newer than `known`
 */
export async function knownVersion(db: Db, name: string, known: number): Promise<number | undefined> {
  const found = await db.collection<SchemaDocument>('schema').findOne({ _id: name })
  const version = found?.version ?? 0
  if (version > known) {
    throw new DatabaseRefused(
      `The database ${db.databaseName} was written by a newer Parley (schema ${version}, this one knows ` +
        `${known}). Start the newer version, or name another database in STORE_URL.`,
    )
  }
  return found === null ? undefined : version
}

/** Creates only missing indexes, one by one, because some servers read every document even if an index exists. */
async function makeIndexes(db: Db, name: string, wanted: Index[]): Promise<void> {
  const collection = db.collection(name)
  const there = new Set((await indexNames(db, name)).map((index) => index.name))
  for (const { name: index, key, having, unique } of wanted) {
    if (there.has(index)) continue
    const options: CreateIndexesOptions = { name: index }
    if (unique === true) options.unique = true
    if (having !== undefined) options.partialFilterExpression = { [having]: { $exists: true } }
    // Two processes that create the same index in a new database may block each other.
    await untilDone(() => unlessConflict(collection.createIndex(key as IndexSpecification, options)))
  }
}

async function indexNames(db: Db, name: string): Promise<{ name?: string }[]> {
  const existing = await db.listCollections({ name }, { nameOnly: true }).toArray()
  return existing.length === 0 ? [] : await db.collection(name).indexes()
}
