import type { Log } from '@parley/kit/process/log'
import type { WebhookMetrics } from '@parley/kit/process/webhook-metrics'
import { timestamp } from '@parley/wire/model/timestamp'
import type { DeliveryHealth, Settlement } from '../store/webhook-store.ts'
import type { DeliveryResult } from './deliverer.ts'
import { type DeliveryQueue, hostOf } from './delivery-queue.ts'
import type { PreparedEvent } from './prepare-events.ts'

interface Attempts {
  /** The number of attempts to deliver the event. */
  attempts: number
  /** The result of the last attempt. */
  lastStatus?: number | undefined
  lastError?: string | undefined
}

/** Returns a config's health after attempts for an event that is not settled yet. */
export function healthAfter(
  before: DeliveryHealth,
  { attempts, lastStatus, lastError }: Attempts,
): DeliveryHealth {
  return {
    attempts: before.attempts + attempts,
    delivered: before.delivered,
    dropped: before.dropped,
    lastAttemptAt: timestamp(),
    // Only this event's errors are included, because an earlier error must not appear next to a success.
    ...(lastStatus !== undefined && { lastStatus }),
    ...(lastError !== undefined && { lastError }),
  }
}

/** Returns the settlement for an event that was delivered or dropped. */
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

/** Reports an event's outcome in the metrics and the log. Only the receiver's host is named. */
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
  const details = { ...of, sequence, reason, attempts, status, error, host: hostOf(url) }
  log.warn(details, 'webhook event was not delivered')
}
