import { hash } from 'node:crypto'
import { uuidOfHash } from './uuid.ts'

/**
 * Returns the id that a client chooses for the new task of a message with this `Idempotency-Key`: a UUID version 8
 * (RFC 9562) of a hash of the key. Such an id shows that no other message has created the task, and that the task can be
 * canceled before it exists (spec/methods.md#taskscancel).
 */
export function taskIdOfKey(idempotencyKey: string): string {
  return uuidOfHash(hash('sha256', `parley task ${idempotencyKey}`, 'buffer'))
}

const keyMaxChars = 255

/** The `Idempotency-Key` of the request, if the task id is derived from it. */
export function keyOfTask(key: string | string[] | undefined, taskId: string): string | undefined {
  return typeof key === 'string' && key.length <= keyMaxChars && taskIdOfKey(key) === taskId ? key : undefined
}
