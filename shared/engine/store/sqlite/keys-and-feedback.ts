import type { Feedback, IdempotencyRecord } from '../store.ts'
import type { Inside } from './record.ts'

/** Replaces a key that has expired. */
export function claimIdempotencyKey(
  { database, now }: Inside,
  { owner, key, bodyHash, taskId, expiresAt }: IdempotencyRecord,
): Promise<IdempotencyRecord | undefined> {
  const select =
    'SELECT body_hash, task_id, expires_at FROM idempotency_keys WHERE owner = ? AND key = ? AND expires_at > ?'
  const insert =
    'INSERT OR REPLACE INTO idempotency_keys (owner, key, body_hash, task_id, expires_at) VALUES (?, ?, ?, ?, ?)'
  return database.write(() => {
    const there = database.statement(select).get(owner, key, now()) as
      | { body_hash: string; task_id: string; expires_at: number }
      | undefined
    if (there !== undefined) {
      return { owner, key, bodyHash: there.body_hash, taskId: there.task_id, expiresAt: there.expires_at }
    }
    database.statement(insert).run(owner, key, bodyHash, taskId, expiresAt)
    return undefined
  })
}

/** Nothing is kept for a task that is not there (any more). */
export async function saveFeedback({ database }: Inside, feedback: Feedback): Promise<void> {
  const body = JSON.stringify(feedback)
  const save = `INSERT OR REPLACE INTO feedback (task_id, owner, body)
    SELECT id, ?, ? FROM tasks WHERE id = ?`
  return database.write(() => {
    database.statement(save).run(feedback.owner, body, feedback.taskId)
  })
}

export function findFeedback(
  { database }: Inside,
  taskId: string,
  owner: string,
): Promise<Feedback | undefined> {
  return database.read(() => {
    const row = database
      .statement('SELECT body FROM feedback WHERE task_id = ? AND owner = ?')
      .get(taskId, owner)
    return row === undefined ? undefined : (JSON.parse(row['body'] as string) as Feedback)
  })
}
