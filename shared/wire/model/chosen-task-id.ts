import { hash } from 'node:crypto'

/**
 * Returns the id that a client chooses for the new task of a message with this `Idempotency-Key`: a UUID version 8
 * (RFC 9562) from a hash of the key. Such an id shows that no other message has created the task, and that the task can be
 * canceled before it exists (spec/methods.md#taskscancel).
 */
export function taskIdOfKey(idempotencyKey: string): string {
  const bytes = hash('sha256', `parley task ${idempotencyKey}`, 'buffer')
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    '-',
  )
}

const keyMaxChars = 255

/** The `Idempotency-Key` of the request, if the task id is derived from it. */
export function keyOfTask(key: string | string[] | undefined, taskId: string): string | undefined {
  return typeof key === 'string' && key.length <= keyMaxChars && taskIdOfKey(key) === taskId ? key : undefined
}
