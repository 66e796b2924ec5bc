import type { Slot } from '@parley/engine/queue/scheduler'
import { ParleyError } from '@parley/wire/errors'
import type { Services } from './method.ts'

/**
 * Claims a worker or a place in the queue, so that concurrent messages cannot share the last one. One owner may hold at most
 * half of the places, or the only place in a queue of 1.
 * @throws ParleyError Unavailable when TASK_QUEUE_MAX tasks are waiting, or half as many of this owner's tasks
 */
export async function claimQueuePlace(
  { scheduler, taskQueueMax: all }: Services,
  owner: string,
): Promise<Slot> {
  const slot = scheduler.claimSlot()
  if (slot !== undefined) return slot
  const ofOwner = Math.min(all, Math.max(1, Math.floor(all / 2)))
  const place = await scheduler.reserve(owner, { all, ofOwner })
  if (typeof place !== 'string') return place
  const isOwners = place === 'owner_full'
  throw new ParleyError('Unavailable', {
    message: isOwners
      ? `${ofOwner} tasks of this caller are waiting, which is the maximum: wait until some end, or cancel some`
      : 'Too many tasks are waiting',
    // Gateways then send the message to another agent, whichever limit was reached.
    data: { reason: 'queue_full', max: isOwners ? ofOwner : all },
    headers: { 'retry-after': '5' },
  })
}
