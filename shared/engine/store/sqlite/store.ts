import { Cursors } from '@parley/kit/database/cursor'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import { bytesIn } from '@parley/kit/database/sqlite/row'
import { idempotencyKeys } from '../idempotency-keys.ts'
import { LargeParts } from '../large-parts.ts'
import { paymentStore } from '../payments.ts'
import { webhookStore } from '../push-configs.ts'
import { signatures } from '../signatures.ts'
import type { Store } from '../store.ts'
import { usageStore } from '../usage-days.ts'
import { listAllTasks } from './all-tasks.ts'
import { clearContext, findContext, isAnothersContext, listContexts, removeEnded } from './contexts.ts'
import { EndedTasks } from './ended-tasks.ts'
import { findFeedback, saveFeedback } from './feedback.ts'
import { contextHistory, listTasks, outlineTasks } from './lists.ts'
import type { SqliteContext } from './record.ts'
import { agentMigrations } from './schema.ts'
import { TaskLog } from './task-log.ts'
import {
  commitTask,
  countByState,
  countEvents,
  createTask,
  findTask,
  listDue,
  listUnfinished,
  loadTask,
  outlineTask,
  ownerOf,
  renewLeases,
} from './tasks.ts'

export interface SqliteStoreOptions {
  /** Path of the database file, which is created with its parent folders if it does not exist. */
  file: string
  /** Parts larger than this are stored separately from the task. Default 256 KiB. */
  largePartBytes?: number
  /** Returns milliseconds since 1970 for expiry checks. Default: the system clock. */
  clock?: () => number
}

/**
 * The embedded store, a single file that only this process writes. Every write has reached the disk when it resolves.
 * @throws DatabaseRefused if another process has the file open or a newer version wrote it
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  await using opened = new AsyncDisposableStack()
  const database = opened.use(await openDatabase(options.file, agentMigrations))
  const key = await database.read(() => database.statement('SELECT key FROM cursor_key').get())
  const log = await TaskLog.open(database, options.file)
  const store: SqliteContext = {
    database,
    log,
    largeParts: new LargeParts(options.largePartBytes ?? 256 * 1024),
    cursors: new Cursors(bytesIn(key, 'key')),
    endedTasks: new EndedTasks(),
    now: options.clock ?? Date.now,
  }
  const documents = sqliteDocuments(database)
  const { claimIdempotencyKey, removeExpiredKeys } = idempotencyKeys(documents, store.now)
  opened.move()
  return {
    exclusive: true,
    ping: () => database.ping(),

    createTask: (record, generated) => createTask(store, record, generated),
    findTask: (id, owner, admit) => findTask(store, id, owner, admit),
    outlineTask: (id, owner, admit) => outlineTask(store, id, owner, admit),
    ownerOf: (id) => ownerOf(store, id),
    loadTask: (id) => loadTask(store, id),
    commitTask: (record, soon) => store.endedTasks.changing(record.id, () => commitTask(store, record, soon)),
    listTasks: (query) => listTasks(store, query),
    outlineTasks: (query, admit) => outlineTasks(store, query, admit),
    listAllTasks: (query) => listAllTasks(store, query),
    listUnfinished: (now, ourHolder, which) => listUnfinished(store, now, ourHolder, which),
    countEvents: (taskIds) => countEvents(store, taskIds),
    listDue: (now, limit, which) => listDue(store, now, limit, which),
    noteSurvived: async () => {},
    renewLeases: (holder, taskIds, until) => renewLeases(store, holder, taskIds, until),
    countByState: () => countByState(store),

    findContext: (id, owner) => findContext(store, id, owner),
    isAnothersContext: (id, owner) => isAnothersContext(store, id, owner),
    listContexts: (query) => listContexts(store, query),
    contextHistory: (contextId, owner, limit) => contextHistory(store, contextId, owner, limit),
    clearContext: (id, owner) => store.endedTasks.clearing(() => clearContext(store, id, owner)),

    claimIdempotencyKey,
    saveFeedback: (feedback) => saveFeedback(store, feedback),
    findFeedback: (taskId, owner) => findFeedback(store, taskId, owner),
    removeEnded: async (before, limit) => {
      await removeExpiredKeys(limit)
      return store.endedTasks.clearing(() => removeEnded(store, before, limit))
    },

    ...signatures(documents, store.now),

    webhooks: webhookStore(documents, store.now),
    payments: paymentStore(documents),
    usage: usageStore(documents),

    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
