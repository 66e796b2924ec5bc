import { randomBytes } from 'node:crypto'
import { Cursors } from '@parley/kit/database/cursor'
import {
  connectMongodb,
  insertUnlessThere,
  type MongodbDatabaseOptions,
} from '@parley/kit/database/mongodb/database'
import { guarded } from '@parley/kit/database/mongodb/guard'
import { agentIndexes, agentMigrations, prepareSchema } from '@parley/kit/database/mongodb/schema'
import { Binary, type Collection } from 'mongodb'
import { LargeParts } from '../large-parts.ts'
import type { Store } from '../store.ts'
import { clearContext, findContext, isAnothersContext } from './contexts.ts'
import { refuseUnfinishedImport } from './import.ts'
import { claimIdempotencyKey, findFeedback, saveFeedback } from './keys-and-feedback.ts'
import { contextHistory, listContexts, listTasks, outlineTasks } from './lists.ts'
import { mongodbPayments } from './payments.ts'
import type { BesideTasks, Inside } from './record.ts'
import { removeEnded } from './retention.ts'
import { signatureTaker } from './signatures.ts'
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
import { mongodbWebhooks } from './webhooks.ts'

export interface MongodbStoreOptions extends MongodbDatabaseOptions {
  /** Part of every key and query: one database serves all agents, and none sees another's. */
  agentId: string
  /** Parts larger than this are kept beside the task. Default 256 KiB. */
  largePartBytes?: number
  /** How long one question or change may take. Default 10,000; what works through many tasks takes as long as it takes. */
  operationTimeoutMs?: number
  /** Milliseconds since 1970; what expires goes by it. Default: the system's. */
  clock?: () => number
}

/**
 * A store that several processes and machines share. Each change is one document; what needs two is written in an order in
 * which a crash in between leaves nothing that anybody was told of, and is made up for later. Writes are acknowledged by
 * the majority and its journals.
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
  const inside: Inside = {
    agentId,
    tasks: db.collection('tasks'),
    contexts: db.collection('contexts'),
    parts: db.collection('parts'),
    beside: ((name: string) => db.collection(name)) as BesideTasks,
    largeParts: new LargeParts(options.largePartBytes ?? 256 * 1024),
    cursors: new Cursors(await cursorKey(settings, agentId)),
    now: options.clock ?? Date.now,
    joined: new Set(),
  }
  await settings.updateOne({ _id: pingOf(inside), agent_id: agentId }, { $set: { at: 0 } }, { upsert: true })
  const open = stack.move()
  const timeoutMs = options.operationTimeoutMs ?? 10_000
  const guard = <T extends object>(methods: T) =>
    guarded(methods, { closed: () => open.disposed, timeoutMs, unbounded })
  return {
    ...guard(storeOf(inside, settings)),
    exclusive: false,
    webhooks: guard(mongodbWebhooks(inside)),
    payments: guard(mongodbPayments(inside)),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

/** An index over many documents takes its time. */
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

const pingOf = ({ agentId }: Inside) => `${agentId}/ping`

/** Made by whoever is first, so that a cursor of one process is read by all. */
async function cursorKey(settings: Collection<SettingDocument>, agentId: string): Promise<Uint8Array> {
  const ours = { _id: `${agentId}/cursor_key`, agent_id: agentId }
  const made = new Binary(randomBytes(32))
  if (await insertUnlessThere(settings, { ...ours, key: made })) return made.buffer
  const key = (await settings.findOne(ours))?.key
  if (key === undefined) throw new Error('The key of cursors is missing in the store')
  return key.buffer
}

type Methods = Omit<Store, 'exclusive' | 'webhooks' | 'payments' | typeof Symbol.asyncDispose>

function storeOf(inside: Inside, settings: Collection<SettingDocument>): Methods {
  return {
    ping: async () => {
      const ours = { _id: pingOf(inside), agent_id: inside.agentId }
      await settings.updateOne(ours, { $set: { at: inside.now() } })
    },

    createTask: (record) => createTask(inside, record),
    findTask: (id, owner, admit) => findTask(inside, id, owner, admit),
    outlineTask: (id, owner, admit) => outlineTask(inside, id, owner, admit),
    loadTask: (id) => loadTask(inside, id),
    commitTask: (record) => commitTask(inside, record),
    listTasks: (query) => listTasks(inside, query),
    outlineTasks: (query, admit) => outlineTasks(inside, query, admit),
    listUnfinished: (now, _holder, which) => listUnfinished(inside, now, which),
    countEvents: (taskIds) => countEvents(inside, taskIds),
    listDue: (now, limit) => listDue(inside, now, limit),
    renewLeases: (holder, taskIds, until) => renewLeases(inside, holder, taskIds, until),
    noteSurvived: (taskId, start) => noteSurvived(inside, taskId, start),
    countByState: () => countByState(inside),

    findContext: (id, owner) => findContext(inside, id, owner),
    isAnothersContext: (id, owner) => isAnothersContext(inside, id, owner),
    listContexts: (query) => listContexts(inside, query),
    contextHistory: (contextId, owner, limit) => contextHistory(inside, contextId, owner, limit),
    clearContext: (id, owner) => clearContext(inside, id, owner),

    claimIdempotencyKey: (record) => claimIdempotencyKey(inside, record),
    saveFeedback: (feedback) => saveFeedback(inside, feedback),
    findFeedback: (taskId, owner) => findFeedback(inside, taskId, owner),
    removeEnded: (before, limit) => removeEnded(inside, before, limit),

    takeSignature: signatureTaker(inside),
  }
}

/** Their work grows with the store; each step of it is bounded by the driver. */
const unbounded = new Set([
  'countByState',
  'removeEnded',
  'clearContext',
  'countPaymentsByState',
  'removeUnpaid',
])
