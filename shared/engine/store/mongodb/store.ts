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
import { clearContext, findContext, isAnothersContext } from './contexts.ts'
import { findFeedback, saveFeedback } from './feedback.ts'
import { refuseUnfinishedImport } from './import.ts'
import { contextHistory, listContexts, listTasks, outlineTasks } from './lists.ts'
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
  renewLeases,
} from './tasks.ts'

export interface MongodbStoreOptions extends MongodbDatabaseOptions {
  /** Part of every key and query. One database serves all agents and keeps them apart. */
  agentId: string
  /** Parts larger than this are stored separately from the task. Default 256 KiB. */
  largePartBytes?: number
  /** Timeout of one operation. Default 10,000. Operations over many tasks are not limited. */
  operationTimeoutMs?: number
  /** Milliseconds since 1970, for expiry. Default: the system's clock. */
  clock?: () => number
}

/**
 * A store that several processes and machines share. Each change is one document. Changes of two documents are ordered so
 * that a crash in between leaves only unacknowledged data, which is cleaned up later. Writes are acknowledged by the
 * majority and their journals.
 * @throws DatabaseRefused when the server is missing, too old or refuses the user, or a newer version wrote the database
 */
export async function openMongodbStore(options: MongodbStoreOptions): Promise<Store> {
  const { agentId } = options
  if (!/^[\w.:-]{1,200}$/.test(agentId))
    throw new Error('The id of an agent has other characters than it may')
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await connectMongodb(options))
  const { db } = database
  await refuseUnfinishedImport(db, agentId)
  await prepareStore(options)
  const settings = db.collection<SettingDocument>('settings')
  const store: MongoContext = {
    agentId,
    tasks: db.collection('tasks'),
    contexts: db.collection('contexts'),
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
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** Creating an index over many documents takes long. */
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

/** Created by the first process, so that all processes can read a cursor. */
async function cursorKey(settings: Collection<SettingDocument>, agentId: string): Promise<Uint8Array> {
  const ours = { _id: `${agentId}/cursor_key`, agent_id: agentId }
  const made = new Binary(randomBytes(32))
  if (await insertUnlessThere(settings, { ...ours, key: made })) return made.buffer
  const key = (await settings.findOne(ours))?.key
  if (key === undefined) throw new Error('The key of cursors is missing in the store')
  return key.buffer
}

type Methods = Omit<Store, 'exclusive' | 'webhooks' | 'payments' | typeof Symbol.asyncDispose>

function storeOf(store: MongoContext, settings: Collection<SettingDocument>): Methods {
  const { claimIdempotencyKey, removeExpiredKeys } = idempotencyKeys(store.documents, store.now)
  return {
    ping: async () => {
      const ours = { _id: pingOf(store), agent_id: store.agentId }
      await settings.updateOne(ours, { $set: { at: store.now() } })
    },

    createTask: (record) => createTask(store, record),
    findTask: (id, owner, admit) => findTask(store, id, owner, admit),
    outlineTask: (id, owner, admit) => outlineTask(store, id, owner, admit),
    loadTask: (id) => loadTask(store, id),
    commitTask: (record) => commitTask(store, record),
    listTasks: (query) => listTasks(store, query),
    outlineTasks: (query, admit) => outlineTasks(store, query, admit),
    listUnfinished: (now, _holder, which) => listUnfinished(store, now, which),
    countEvents: (taskIds) => countEvents(store, taskIds),
    listDue: (now, limit) => listDue(store, now, limit),
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

/** Their work grows with the store. The driver limits each step. */
const unbounded = new Set([
  'countByState',
  'removeEnded',
  'clearContext',
  'countPaymentsByState',
  'removeUnpaid',
])
