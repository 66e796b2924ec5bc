import type { Log } from '../process/log.ts'
import type { WebhookMetrics } from '../process/webhook-metrics.ts'
import { timestamp } from '../protocol/timestamp.ts'
import type { DeliveryHealth, Settlement } from '../store/webhook-store.ts'
import type { DeliveryResult } from './deliver.ts'
import { hostOf, type Lane } from './lane.ts'
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

const reasonOf = ({ reason }: DeliveryResult): string => reason ?? 'exhausted'

/** Tells the operator how an event ended; of the receiver only its host. */
export function tellOutcome(
  { metrics, log }: { metrics: WebhookMetrics; log: Log },
  { task, configId }: Lane,
  { event, url }: { event: PreparedEvent; url: string },
  result: DeliveryResult,
): void {
  if (result.outcome === 'delivered') {
    metrics.ended('delivered', 1)
    metrics.delivered(Math.max(0, Date.now() - event.at) / 1000)
    return
  }
  const reason = reasonOf(result)
  metrics.ended(reason, 1)
  const of = { task_id: task.id, config_id: configId || 'global', event_id: event.eventId }
  const { sequence } = event
  const { attempts, lastStatus: status, lastError: error } = result
  const lost = { ...of, sequence, reason, attempts, status, error, host: hostOf(url) }
  log.warn(lost, 'webhook event is lost')
}
