import type { Store } from '@parley/engine/store/store'
import { newId } from '@parley/kit/database/new-id'
import { ParleyError } from '@parley/wire/errors'
import type { Call } from './method.ts'

const retentionMs = 24 * 60 * 60 * 1000

export interface IdempotencyKey {
  taskId: string
  /** Whether an earlier request with the same body has claimed the key. */
  isRepeat: boolean
}

/**
 * Binds the `Idempotency-Key` header to a task ID before the task is created, so that a crash between the two writes leaves
 * nothing inconsistent. For 24 hours, requests with the same caller, key and body receive the same task.
 * @throws ParleyError InvalidParams for the same key with another body, or a malformed key
 */
export async function claimIdempotencyKey(
  store: Store,
  call: Call,
  requestedTaskId: string | undefined,
): Promise<IdempotencyKey | undefined> {
  const key = call.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || key.length === 0 || key.length > 255) {
    throw new ParleyError('InvalidParams', { message: 'Idempotency-Key must have 1 to 255 characters' })
  }
  const bodyHash = call.bodyHash()
  const taskId = requestedTaskId ?? newId()
  const claimed = await store.claimIdempotencyKey({
    owner: call.caller.id,
    key,
    bodyHash,
    taskId,
    expiresAt: Date.now() + retentionMs,
  })
  if (claimed === undefined) return { taskId, isRepeat: false }
  if (claimed.bodyHash === bodyHash) return { taskId: claimed.taskId, isRepeat: true }
  throw new ParleyError('InvalidParams', { message: 'Idempotency-Key was used with another body' })
}
