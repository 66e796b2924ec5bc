import type { Log } from '@parley/kit/process/log'
import type { WebhookMetrics } from '@parley/kit/process/webhook-metrics'
import { timestamp } from '@parley/wire/model/timestamp'
import type { DeliveryHealth, Settlement } from '../store/webhook-store.ts'
import type { DeliveryResult } from './deliverer.ts'
import { type DeliveryQueue, hostOf } from './delivery-queue.ts'
import type { PreparedEvent } from './prepare-events.ts'

interface Attempts {
  /** Made of the event. */
  attempts: number
  /** Of the last one. */
  lastStatus?: number | undefined
  lastError?: string | undefined
}

/** How a config fares after these attempts of an event, as long as nothing is decided about it. */
export function healthAfter(
  before: DeliveryHealth,
  { attempts, lastStatus, lastError }: Attempts,
): DeliveryHealth {
  return {
    attempts: before.attempts + attempts,
    delivered: before.delivered,
    dropped: before.dropped,
    lastAttemptAt: timestamp(),
    // Of this event: what was wrong with an earlier one does not stand beside a success.
    ...(lastStatus !== undefined && { lastStatus }),
    ...(lastError !== undefined && { lastError }),
  }
}

/** How far a config has come when the deliverer has done with the event: acknowledged or given up. */
export function settlementOf(
  before: DeliveryHealth,
  event: PreparedEvent,
  result: DeliveryResult,
): Settlement {
  const health = healthAfter(before, result)
  if (result.outcome === 'delivered') health.delivered += 1
  else {
    const reason = reasonOf(result)
    health.dropped = { ...before.dropped, [reason]: (before.dropped[reason] ?? 0) + 1 }
  }
  return { settled: event.sequence, open: !event.last, health }
}

const reasonOf = ({ reason }: DeliveryResult): string => reason ?? 'exhausted'

/** Tells the operator how an event ended; of the receiver only its host. */
export function reportOutcome(
  { metrics, log }: { metrics: WebhookMetrics; log: Log },
  { task, configId }: DeliveryQueue,
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
