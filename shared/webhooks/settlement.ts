import { timestamp } from '../protocol/timestamp.ts'
import type { DeliveryHealth, Settlement } from '../store/webhook-store.ts'
import type { DeliveryResult } from './deliver.ts'
import type { Lane } from './lane.ts'
import type { PreparedEvent } from './prepare-events.ts'

/** How far a config has come when the deliverer has done with the event: acknowledged or given up. */
export function settlementOf(
  before: DeliveryHealth,
  event: PreparedEvent,
  result: DeliveryResult,
): Settlement {
  const health: DeliveryHealth = {
    attempts: before.attempts + result.attempts,
    delivered: before.delivered,
    dropped: before.dropped,
    lastAttemptAt: timestamp(),
  }
  // Of this event: what was wrong with an earlier one does not stand beside a success.
  if (result.lastStatus !== undefined) health.lastStatus = result.lastStatus
  if (result.lastError !== undefined) health.lastError = result.lastError
  if (result.outcome === 'delivered') health.delivered += 1
  else {
    const reason = reasonOf(result)
    health.dropped = { ...before.dropped, [reason]: (before.dropped[reason] ?? 0) + 1 }
  }
  return { settled: event.sequence, open: !event.last, health }
}

export const reasonOf = ({ reason }: DeliveryResult): string => reason ?? 'exhausted'

/** What the log tells of an event that was given up. */
export function lossOf(
  { task, configId }: Lane,
  { eventId, sequence }: PreparedEvent,
  result: DeliveryResult,
) {
  return {
    task_id: task.id,
    config_id: configId ?? 'global',
    event_id: eventId,
    sequence,
    reason: reasonOf(result),
    attempts: result.attempts,
    status: result.lastStatus,
    error: result.lastError,
  }
}
