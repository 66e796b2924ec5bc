import { randomBytes } from 'node:crypto'
import { Cursors } from '@parley/kit/database/cursor'
import {
  connectMongodb,
  insertUnlessThere,
  type MongodbDatabaseOptions,
} from '@parley/kit/database/mongodb/database'
import { mongodbDocuments } from '@parley/kit/database/mongodb/documents'
import { guarded } from '@parley/kit/database/mongodb/guard'
import { agentIndexes, agentMigrations, prepareSchema } from '@parley/kit/database/mongodb/schema'
import { Binary, type Collection } from 'mongodb'
import { idempotencyKeys } from '../idempotency-keys.ts'
import { LargeParts } from '../large-parts.ts'
import { paymentStore } from '../payments.ts'
import { webhookStore } from '../push-configs.ts'
import { signatures } from '../signatures.ts'
import type { Store } from '../store.ts'
import { usageStore } from '../usage-days.ts'
import { listAllTasks } from './all-tasks.ts'
import { storeBatches } from './batches.ts'
import { clearContext, findContext, isAnothersContext } from './contexts.ts'
import { findFeedback, saveFeedback } from './feedback.ts'
import { refuseUnfinishedImport } from './import.ts'
import { contextHistory, listContexts, listTasks, outlineTasks } from './lists.ts'
import { refuseOtherDatabase } from './own-database.ts'
import type { BesideTasks, MongoContext } from './record.ts'
import { removeEnded } from './retention.ts'
import {
  commitTask,
  countByState,
  countEvents,
  createTask,
  findTask,
  listDue,
  listUnfinished,
  loadTask,
  noteSurvived,
  outlineTask,
  ownerOf,
  renewLeases,
} from './tasks.ts'

export interface MongodbStoreOptions extends MongodbDatabaseOptions {
  /** Part of every key and query, so that one database can serve all agents separately. */
  agentId: string
  /** Parts larger than this are stored separately from the task. Default 256 KiB. */
  largePartBytes?: number
  /** Timeout for one operation. Default 10,000. Operations on many tasks have no timeout. */
  operationTimeoutMs?: number
  /** Returns milliseconds since 1970 for expiry checks. Default: the system clock. */
  clock?: () => number
}

/**
 * A store that several processes and machines can share. Each change writes one document. Changes to two documents
 * are ordered so that a crash between them leaves only unacknowledged data, which is cleaned up later. A write is
 * acknowledged once a majority of the servers has it in their journals.
 * @throws DatabaseRefused if the server is unreachable or too old, rejects the user, or has a database of a newer
 * version
 */
export async function openMongodbStore(options: MongodbStoreOptions): Promise<Store> {
  const { agentId } = options
  if (!/^[\w.:-]{1,200}$/.test(agentId))
    throw new Error('The id of an agent has other characters than it may')
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await connectMongodb(options))
  const { db } = database
  await refuseUnfinishedImport(db, agentId)
  await refuseOtherDatabase(db, agentId)
  await prepareStore(options)
  const settings = db.collection<SettingDocument>('settings')
  const store: MongoContext = {
    agentId,
    tasks: db.collection('tasks'),
    contexts: db.collection('contexts'),
    batches: storeBatches(db),
    parts: db.collection('parts'),
    documents: mongodbDocuments(db, agentId, options.clock),
    beside: ((name: string) => db.collection(name)) as BesideTasks,
    largeParts: new LargeParts(options.largePartBytes ?? 256 * 1024),
    cursors: new Cursors(await cursorKey(settings, agentId)),
    now: options.clock ?? Date.now,
    joined: new Set(),
  }
  await settings.updateOne({ _id: pingOf(store), agent_id: agentId }, { $set: { at: 0 } }, { upsert: true })
  const open = stack.move()
  const timeoutMs = options.operationTimeoutMs ?? 10_000
  const guard = <T extends object>(methods: T) =>
    guarded(methods, { closed: () => open.disposed, timeoutMs, unbounded })
  return {
    ...guard(storeOf(store, settings)),
    exclusive: false,
    webhooks: guard(webhookStore(store.documents, store.now)),
    payments: guard(paymentStore(store.documents)),
    usage: guard(usageStore(store.documents)),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** Uses a long timeout, because creating an index over many documents takes a long time. */
async function prepareStore(options: MongodbStoreOptions): Promise<void> {
  await using patient = await connectMongodb({ ...options, socketTimeoutMs: schemaTimeoutMs })
  await prepareSchema(patient.db, 'agent_store', { indexes: agentIndexes, migrations: agentMigrations })
}

const schemaTimeoutMs = 60 * 60 * 1000

interface SettingDocument {
  _id: string
  agent_id: string
  key?: Binary
  at?: number
}

const pingOf = ({ agentId }: MongoContext) => `${agentId}/ping`

/** Returns the key that the first process created, so that all processes can read each other's cursors. */
async function cursorKey(settings: Collection<SettingDocument>, agentId: string): Promise<Uint8Array> {
  const ours = { _id: `${agentId}/cursor_key`, agent_id: agentId }
  const made = new Binary(randomBytes(32))
  if (await insertUnlessThere(settings, { ...ours, key: made })) return made.buffer
  const key = (await settings.findOne(ours))?.key
  if (key === undefined) throw new Error('The key of cursors is missing in the store')
  return key.buffer
}

type Methods = Omit<Store, 'exclusive' | 'webhooks' | 'payments' | 'usage' | typeof Symbol.asyncDispose>

function storeOf(store: MongoContext, settings: Collection<SettingDocument>): Methods {
  const { claimIdempotencyKey, removeExpiredKeys } = idempotencyKeys(store.documents, store.now)
  return {
    ping: async () => {
      const ours = { _id: pingOf(store), agent_id: store.agentId }
      await settings.updateOne(ours, { $set: { at: store.now() } })
    },

    createTask: (record, generated) => createTask(store, record, generated),
    findTask: (id, owner, admit) => findTask(store, id, owner, admit),
    outlineTask: (id, owner, admit) => outlineTask(store, id, owner, admit),
    ownerOf: (id) => ownerOf(store, id),
    loadTask: (id) => loadTask(store, id),
    commitTask: (record) => commitTask(store, record),
    listTasks: (query) => listTasks(store, query),
    outlineTasks: (query, admit) => outlineTasks(store, query, admit),
    listAllTasks: (query) => listAllTasks(store, query),
    listUnfinished: (now, _holder, which) => listUnfinished(store, now, which),
    countEvents: (taskIds) => countEvents(store, taskIds),
    listDue: (now, limit, which) => listDue(store, now, limit, which),
    renewLeases: (holder, taskIds, until) => renewLeases(store, holder, taskIds, until),
    noteSurvived: (taskId, start) => noteSurvived(store, taskId, start),
    countByState: () => countByState(store),

    findContext: (id, owner) => findContext(store, id, owner),
    isAnothersContext: (id, owner) => isAnothersContext(store, id, owner),
    listContexts: (query) => listContexts(store, query),
    contextHistory: (contextId, owner, limit) => contextHistory(store, contextId, owner, limit),
    clearContext: (id, owner) => clearContext(store, id, owner),

    claimIdempotencyKey,
    saveFeedback: (feedback) => saveFeedback(store, feedback),
    findFeedback: (taskId, owner) => findFeedback(store, taskId, owner),
    removeEnded: async (before, limit) => {
      await removeExpiredKeys(limit)
      return removeEnded(store, before, limit)
    },

    ...signatures(store.documents, store.now),
  }
}

/** Methods whose work grows with the store. The driver limits each of their steps. */
const unbounded = new Set([
  'countByState',
  'removeEnded',
  'clearContext',
  'countPaymentsByState',
  'removeUnpaid',
])
