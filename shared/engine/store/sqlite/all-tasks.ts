import { integerIn, textIn } from '@parley/kit/database/sqlite/row'
import { isTerminal, taskStates } from '@parley/wire/model/task'
import { type AllTasksPage, type AllTasksQuery, allTasksPageMaxBytes, delegatesMax } from '../all-tasks.ts'
import { outlineOf, type SqliteContext, type TaskRow, taskColumns } from './record.ts'

/** Indexes are named, as for the lists of one owner. */
const indexes = {
  all: {
    open: 'tasks INDEXED BY tasks_open_of_owner WHERE open_state = ?',
    ended: 'tasks INDEXED BY tasks_ended_by_status WHERE ended_state = ?',
  },
  owner: {
    open: 'tasks INDEXED BY tasks_open_of_owner WHERE open_state = ? AND owner = ?',
    ended: 'tasks INDEXED BY tasks_ended_by_status_of_owner WHERE ended_state = ? AND owner = ?',
  },
  context: {
    open: 'tasks INDEXED BY tasks_open_of_context WHERE open_state = ? AND context_id = ?',
    ended: 'tasks INDEXED BY tasks_ended_by_status_of_context WHERE ended_state = ? AND context_id = ?',
  },
}

interface Position {
  at: string
  seq: number
}

const list = 'all tasks'
/** Artifacts of large bodies are removed before the body is read. */
const columns = taskColumns.replace(
  /, body$/,
  `, CASE WHEN octet_length(body) > 65536 THEN json_remove(body, '$.artifacts') ELSE body END AS body`,
)

export async function listAllTasks(store: SqliteContext, query: AllTasksQuery): Promise<AllTasksPage> {
  const { database, cursors, log } = store
  const { cursor, limit } = query
  const position = cursor === undefined ? undefined : cursors.open(list, '', cursor)
  const [at, seq]: unknown[] = Array.isArray(position) ? position : []
  const before = position === undefined ? undefined : { at: String(at), seq: Number(seq) }
  return log.readTables(() => {
    const found = newest(store, query, { before, limit: limit + 1 })
    const items: AllTasksPage['items'] = []
    let bytes = 0
    for (const { seq: row } of found.slice(0, limit)) {
      if (bytes > allTasksPageMaxBytes) break
      const read = database.statement(`SELECT ${columns} FROM tasks WHERE seq = ?`).get(row)
      const taskRow = read as unknown as TaskRow
      bytes += taskRow.body.length
      items.push(outlineOf(store, taskRow, false).task)
    }
    const last = found[items.length - 1]
    const more = last !== undefined && items.length < found.length
    return more ? { items, nextCursor: cursors.seal(list, '', [last.at, last.seq]) } : { items }
  })
}

/** Merges the newest tasks of each state, and of each owner if the query names one. */
function newest(
  store: SqliteContext,
  { owner, contextId, states = taskStates, since = '', until }: AllTasksQuery,
  { before, limit }: { before: Position | undefined; limit: number },
): Position[] {
  const { database } = store
  // The empty sequence number excludes tasks of the time `until`. U+FFFF sorts after every timestamp.
  const bound =
    until !== undefined && (before === undefined || until <= before.at)
      ? { at: until, seq: 0 }
      : (before ?? { at: '\uffff', seq: 0 })
  const sources =
    contextId !== undefined
      ? [{ from: indexes.context, values: [contextId] }]
      : owner !== undefined
        ? ownersFor(store, owner).map((one) => ({ from: indexes.owner, values: [one] }))
        : [{ from: indexes.all, values: [] }]
  const all: Position[] = []
  for (const { from, values } of sources) {
    for (const state of new Set(states)) {
      const sql = `SELECT seq, status_at FROM ${isTerminal(state) ? from.ended : from.open}
        AND status_at >= ? AND (status_at, seq) < (?, ?) ORDER BY status_at DESC, seq DESC LIMIT ?`
      const rows = database.statement(sql).all(state, ...values, since, bound.at, bound.seq, limit)
      for (const row of rows) all.push({ at: textIn(row, 'status_at'), seq: integerIn(row, 'seq') })
    }
  }
  return all.sort((a, b) => (a.at === b.at ? b.seq - a.seq : a.at < b.at ? 1 : -1)).slice(0, limit)
}

/** The owner, and the owners of what agents created for it. Every owner of a task has a context. */
function ownersFor({ database }: SqliteContext, owner: string): string[] {
  const owners = [owner]
  const next = database.statement(
    'SELECT owner FROM contexts INDEXED BY contexts_of_owner WHERE owner > ? AND owner < ? ORDER BY owner LIMIT 1',
  )
  // Delegated owners begin with the owner and U+001F (`delegatedOwner`).
  for (let after = `${owner}\u001F`; owners.length <= delegatesMax; after = owners.at(-1) ?? owner) {
    const row = next.get(after, `${owner}\u0020`)
    if (row === undefined) break
    owners.push(textIn(row, 'owner'))
  }
  return owners
}
