import { integerIn, type Row, textIn } from '@parley/kit/database/sqlite/row'
import { isTerminal, taskStates, terminalStates } from '@parley/wire/model/task'
import type { ContextPage, ContextRecord } from '../store.ts'
import { newest } from './lists.ts'
import type { SqliteContext } from './record.ts'

/** Maximum numbers of task ids to read for one context and for a page. */
const [idsPerContextMax, idsPerPageMax] = [1000, 10_000]

/** Maximum number of attempts to clear a context that changes at the same time. */
const clearAttemptsMax = 10

/** Tables whose rows belong to a task. */
const tablesOfTasks = ['parts', 'feedback', 'idempotency_keys', 'push_configs']
const columns = 'id, owner, created_at, updated_at, name'
const openStates = taskStates.filter((state) => !isTerminal(state))

export function findContext(
  { database, log }: SqliteContext,
  id: string,
  owner: string,
): Promise<ContextRecord | undefined> {
  return log.readTables(() => {
    const row = database
      .statement(`SELECT ${columns} FROM contexts WHERE id = ? AND owner = ?`)
      .get(id, owner)
    return row === undefined ? undefined : contextOf(row)
  }, id)
}

export function isAnothersContext(
  { database, log }: SqliteContext,
  id: string,
  owner: string,
): Promise<boolean> {
  return database.read(() => {
    const logged = log.ownerOfContext(id)
    if (logged !== undefined) return logged !== owner
    const sql = 'SELECT 1 FROM contexts WHERE id = ? AND owner <> ?'
    return database.statement(sql).get(id, owner) !== undefined
  })
}

export function listContexts(
  store: SqliteContext,
  query: { owner: string; limit: number; cursor?: string },
): Promise<ContextPage> {
  const { database, cursors, log } = store
  const { owner, limit, cursor } = query
  const sql = `SELECT ${columns}, task_count FROM contexts INDEXED BY contexts_of_owner
    WHERE owner = ? AND (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?`
  return log.readTables(() => {
    // U+FFFF sorts after every timestamp.
    const before = cursor === undefined ? undefined : cursors.open('contexts', owner, cursor)
    const [updatedAt, id]: string[] = Array.isArray(before) ? before.map(String) : ['\uffff', '']
    const items: ContextPage['items'] = []
    let ids = 0
    for (const row of database.statement(sql).iterate(owner, updatedAt ?? '', id ?? '', limit + 1)) {
      const last = items.at(-1)
      if (last !== undefined && (items.length >= limit || ids >= idsPerPageMax)) {
        return { items, nextCursor: cursors.seal('contexts', owner, [last.updatedAt, last.id]) }
      }
      const context = contextOf(row)
      const taskIds = taskIdsOf(store, context.id)
      const busy = isBusy(store, context.id)
      items.push({ ...context, taskIds, taskCount: integerIn(row, 'task_count'), busy })
      ids += taskIds.length
    }
    return { items }
  })
}

function taskIdsOf(store: SqliteContext, contextId: string): string[] {
  const one = store.database.statement('SELECT id FROM tasks WHERE seq = ?')
  const seqs = newest(store, { contextId }, { limit: idsPerContextMax }).reverse()
  return seqs.map((seq) => textIn(one.get(seq), 'id'))
}

function isBusy(store: SqliteContext, contextId: string): boolean {
  return newest(store, { contextId }, { states: openStates, limit: 1 }).length > 0
}

export async function clearContext(
  store: SqliteContext,
  id: string,
  owner: string,
): Promise<'cleared' | 'busy' | 'absent'> {
  const { database, log } = store
  const all = terminalStates.map((state) => `'${state}'`).join(', ')
  const theirs = `tasks INDEXED BY tasks_ended_of_context WHERE ended_state IN (${all}) AND context_id = ?`
  for (let attempt = 0; attempt < clearAttemptsMax; attempt += 1) {
    await log.flush()
    const outcome = await database.write(() => {
      if (log.currentOwnerOfContext(id) !== undefined) return 'changed'
      const found = database.statement('SELECT 1 FROM contexts WHERE id = ? AND owner = ?').get(id, owner)
      if (found === undefined) return 'absent'
      if (isBusy(store, id)) return 'busy'
      for (const table of tablesOfTasks) {
        database.statement(`DELETE FROM ${table} WHERE task_id IN (SELECT id FROM ${theirs})`).run(id)
      }
      database.statement(`DELETE FROM ${theirs}`).run(id)
      database.statement('DELETE FROM contexts WHERE id = ?').run(id)
      return 'cleared'
    })
    if (outcome !== 'changed') return outcome
  }
  return 'busy'
}

export async function removeEnded(
  { database, log }: SqliteContext,
  before: string,
  limit: number,
): Promise<number> {
  // A task changes last when it gets its final status, or later.
  const oldest = `SELECT seq, id, context_id, updated_at FROM tasks INDEXED BY tasks_ended_by_status
    WHERE ended_state = ? AND status_at < ? AND updated_at < ? ORDER BY status_at LIMIT ?`
  await log.flush()
  return database.write(() => {
    const ofStates = terminalStates.flatMap((state) =>
      database.statement(oldest).all(state, before, before, limit),
    )
    const byAge = ofStates.sort((a, b) => (textIn(a, 'updated_at') < textIn(b, 'updated_at') ? -1 : 1))
    // A task in the log has just changed.
    const rows = byAge.slice(0, limit).filter((row) => log.current(textIn(row, 'id')) === undefined)
    for (const row of rows) {
      const [id, contextId] = [textIn(row, 'id'), textIn(row, 'context_id')]
      for (const table of tablesOfTasks) {
        database.statement(`DELETE FROM ${table} WHERE task_id = ?`).run(id)
      }
      database.statement('DELETE FROM tasks WHERE seq = ?').run(integerIn(row, 'seq'))
      database.statement('UPDATE contexts SET task_count = task_count - 1 WHERE id = ?').run(contextId)
      // The tasks of a context that are only in the log are not counted yet.
      if (log.currentOwnerOfContext(contextId) === undefined)
        database.statement('DELETE FROM contexts WHERE id = ? AND task_count = 0').run(contextId)
    }
    return rows.length
  })
}

function contextOf(row: Row): ContextRecord {
  return {
    id: textIn(row, 'id'),
    ...(row['name'] !== null && { name: textIn(row, 'name') }),
    owner: textIn(row, 'owner'),
    createdAt: textIn(row, 'created_at'),
    updatedAt: textIn(row, 'updated_at'),
  }
}
