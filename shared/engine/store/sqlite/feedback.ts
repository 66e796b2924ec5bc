import { textIn } from '@parley/kit/database/sqlite/row'
import type { Feedback } from '../store.ts'
import type { SqliteContext } from './record.ts'

/** Feedback on a task that does not exist is discarded. */
export async function saveFeedback({ database, log }: SqliteContext, feedback: Feedback): Promise<void> {
  const { taskId, owner } = feedback
  const body = JSON.stringify(feedback)
  return database.write(() => {
    const find = database.statement('SELECT 1 FROM tasks WHERE id = ?')
    if (log.current(taskId) === undefined && find.get(taskId) === undefined) return
    const save = 'INSERT OR REPLACE INTO feedback (task_id, owner, body) VALUES (?, ?, ?)'
    database.statement(save).run(taskId, owner, body)
  })
}

export function findFeedback(
  { database }: SqliteContext,
  taskId: string,
  owner: string,
): Promise<Feedback | undefined> {
  return database.read(() => {
    const row = database
      .statement('SELECT body FROM feedback WHERE task_id = ? AND owner = ?')
      .get(taskId, owner)
    return row === undefined ? undefined : JSON.parse(textIn(row, 'body'))
  })
}
