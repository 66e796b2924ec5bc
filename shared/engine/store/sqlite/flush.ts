import type { LogRecord } from '@parley/kit/database/segment-log'
import type { Statement } from '@parley/kit/database/sqlite/database'
import { integerIn, textIn } from '@parley/kit/database/sqlite/row'
import { isTerminal, type TaskState } from '@parley/wire/model/task'
import { decodeTasks, type LoggedTask } from './logged-task.ts'

const insertTask = `INSERT INTO tasks
  (seq, id, owner, context_id, state, status_time, created_at, updated_at, version, lease_holder, lease_until, due_at,
  large, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const updateTask = `UPDATE tasks SET state = ?, status_time = ?, updated_at = ?, version = ?, lease_holder = ?,
  lease_until = ?, due_at = ?, large = ?, body = ? WHERE seq = ?`

/**
 * Counts the task in its context and creates the context if it does not exist. Tasks arrive in the order of their last
 * changes, so the one that created the context may come later than others.
 */
const countInContext = `INSERT INTO contexts (id, owner, created_at, updated_at, name, task_count)
  VALUES (?, ?, ?, ?, ?, 1)
  ON CONFLICT (id) DO UPDATE SET task_count = task_count + 1, updated_at = max(updated_at, excluded.updated_at),
    created_at = min(created_at, excluded.created_at), name = iif(excluded.created_at < created_at, excluded.name, name)`

/** Writes the newest state of each task of the records into the tables, in a transaction of the caller. */
export function flushRecords(
  database: { statement(sql: string): Statement },
  records: readonly LogRecord[],
): void {
  const last = records.at(-1)
  if (last === undefined) return
  const tasks = new Map<string, LoggedTask>()
  for (const { body } of records) for (const task of decodeTasks(body)) tasks.set(task.id, task)
  flushTasks(database, tasks.values(), last.position)
}

/**
 * Writes logged tasks into the tables, in a transaction of the caller.
 * @param position the position in the log up to which the tables are then complete
 */
export function flushTasks(
  database: { statement(sql: string): Statement },
  tasks: Iterable<LoggedTask>,
  position: number,
): void {
  const last = integerIn(database.statement('SELECT coalesce(max(seq), 0) AS seq FROM tasks').get(), 'seq')
  const find = database.statement('SELECT state FROM tasks WHERE seq = ?')
  const insert = database.statement(insertTask)
  const update = database.statement(updateTask)
  const count = database.statement(countInContext)
  const ended = new Map<TaskState, number>()
  for (const task of tasks) {
    const { seq, id, owner, context_id, context_name, state, status_time, created_at, updated_at } = task
    const { version, lease_holder, lease_until, due_at, large, body } = task
    const before = seq > last ? undefined : find.get(seq)
    if (before === undefined) {
      count.run(context_id, owner, created_at, created_at, context_name)
      // biome-ignore format: one line for each group of columns
      insert.run(seq, id, owner, context_id, state, status_time, created_at, updated_at, version, lease_holder,
        lease_until, due_at, large, body)
    } else {
      // biome-ignore format: as above
      update.run(state, status_time, updated_at, version, lease_holder, lease_until, due_at, large, body, seq)
    }
    const wasEnded = before !== undefined && isTerminal(textIn(before, 'state') as TaskState)
    if (isTerminal(state) && !wasEnded) ended.set(state, (ended.get(state) ?? 0) + 1)
  }
  const countEnded = database.statement('UPDATE ended_counts SET count = count + ? WHERE state = ?')
  for (const [state, number] of ended) countEnded.run(number, state)
  database.statement('UPDATE task_log_position SET position = ?').run(position)
}
