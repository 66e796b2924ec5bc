import { ParleyError } from '../jsonrpc/errors.ts'
import type { Slot } from '../scheduler/scheduler.ts'
import type { Services } from './method.ts'

/**
 * A worker, or a place in the line: held from here on, so that sends at the same time do not share the last one.
 * @throws ParleyError Unavailable when TASK_QUEUE_MAX tasks wait
 */
export function claimRoom({ scheduler, taskQueueMax }: Services): Slot {
  const slot = scheduler.claimSlot()
  if (slot !== undefined) return slot
  if (scheduler.waiting < taskQueueMax) return scheduler.claimPlace()
  throw new ParleyError('Unavailable', {
    message: 'Too many tasks are waiting',
    data: { reason: 'queue_full' },
    headers: { 'retry-after': '5' },
  })
}
