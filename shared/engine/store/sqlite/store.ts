import { Cursors } from '@parley/kit/database/cursor'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { LargeParts } from '../large-parts.ts'
import type { Store } from '../store.ts'
import { clearContext, findContext, isAnothersContext, listContexts, removeEnded } from './contexts.ts'
import { claimIdempotencyKey, findFeedback, saveFeedback } from './keys-and-feedback.ts'
import { contextHistory, listTasks, outlineTasks } from './lists.ts'
import { sqlitePayments } from './payments.ts'
import type { Inside } from './record.ts'
import { agentMigrations } from './schema.ts'
import { takeSignature } from './signatures.ts'
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
  renewLeases,
} from './tasks.ts'
import { sqliteWebhooks } from './webhooks.ts'

export interface SqliteStoreOptions {
  /** Made where it is not there, with the folders above it. */
  file: string
  /** Parts larger than this are kept beside the task. Default 256 KiB. */
  largePartBytes?: number
  /** Milliseconds since 1970; the expiry of idempotency keys goes by it. Default: the system's. */
  clock?: () => number
}

/**
 * The embedded store: one file, written by this process alone, every promise kept on the disk (`synchronous=FULL`).
 * @throws DatabaseRefused when another process has the file open or a newer version wrote it
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const database = await openDatabase(options.file, agentMigrations)
  const key = await database.read(() => database.statement('SELECT key FROM cursor_key').get()?.['key'])
  const inside: Inside = {
    database,
    largeParts: new LargeParts(options.largePartBytes ?? 256 * 1024),
    cursors: new Cursors(key as Uint8Array),
    now: options.clock ?? Date.now,
  }
  return {
    exclusive: true,
    ping: () => database.ping(),

    createTask: (record) => createTask(inside, record),
    findTask: (id, owner, admit) => findTask(inside, id, owner, admit),
    outlineTask: (id, owner, admit) => outlineTask(inside, id, owner, admit),
    loadTask: (id) => loadTask(inside, id),
    commitTask: (record) => commitTask(inside, record),
    listTasks: (query) => listTasks(inside, query),
    outlineTasks: (query, admit) => outlineTasks(inside, query, admit),
    listUnfinished: (now, ourHolder, which) => listUnfinished(inside, now, ourHolder, which),
    countEvents: (taskIds) => countEvents(inside, taskIds),
    listDue: (now, limit) => listDue(inside, now, limit),
    noteSurvived: async () => {},
    renewLeases: (holder, taskIds, until) => renewLeases(inside, holder, taskIds, until),
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

    takeSignature: (did, signature, until) => takeSignature(inside, did, signature, until),

    webhooks: sqliteWebhooks(inside),
    payments: sqlitePayments(inside),

    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}
