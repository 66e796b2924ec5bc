import type { Store } from '@parley/engine/store/store'
import { ParleyError } from '@parley/wire/errors'
import type { Call } from './method.ts'
import { newId } from './new-id.ts'

const keptMs = 24 * 60 * 60 * 1000

/**
 * The `Idempotency-Key` header: the same caller, key and body get the same task again. The key is bound to its task's id
 * before the task is made, so that a crash between the two leaves nothing half done.
 * @throws ParleyError InvalidParams for the same key with another body, or a malformed key
 */
export async function claimKey(
  store: Store,
  call: Call,
  wantedTaskId: string | undefined,
): Promise<{ taskId: string; seen: boolean } | undefined> {
  const key = call.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || key.length === 0 || key.length > 255) {
    throw new ParleyError('InvalidParams', { message: 'Idempotency-Key must have 1 to 255 characters' })
  }
  const bodyHash = call.bodyHash()
  const taskId = wantedTaskId ?? newId()
  const before = await store.claimIdempotencyKey({
    owner: call.caller.id,
    key,
    bodyHash,
    taskId,
    expiresAt: Date.now() + keptMs,
  })
  if (before === undefined) return { taskId, seen: false }
  if (before.bodyHash === bodyHash) return { taskId: before.taskId, seen: true }
  throw new ParleyError('InvalidParams', { message: 'Idempotency-Key was used with another body' })
}
