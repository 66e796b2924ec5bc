import { textIn } from '@parley/kit/database/sqlite/row'
import type { Feedback } from '../store.ts'
import type { SqliteContext } from './record.ts'

/** Feedback on a task that does not exist is discarded. */
export async function saveFeedback({ database }: SqliteContext, feedback: Feedback): Promise<void> {
  const body = JSON.stringify(feedback)
  const save = `INSERT OR REPLACE INTO feedback (task_id, owner, body)
    SELECT id, ?, ? FROM tasks WHERE id = ?`
  return database.write(() => {
    database.statement(save).run(feedback.owner, body, feedback.taskId)
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
