import type { Log } from '@parley/kit/process/log'
import type { WebhookMetrics } from '@parley/kit/process/webhook-metrics'
import { timestamp } from '@parley/wire/model/timestamp'
import type { DeliveryAttempt, DeliveryHealth, PushConfig, Settlement } from '../store/webhook-store.ts'
import type { Attempt, DeliveryResult } from './deliverer.ts'
import { type DeliveryQueue, hostOf } from './delivery-queue.ts'
import type { NextEvent } from './event-buffer.ts'
import { addLost, removeLost, withoutFirst } from './event-ranges.ts'
import type { PreparedEvent } from './prepare-events.ts'

/** The number of attempts that are kept for each config. */
const triesMax = 20

/** Returns the attempt as it is stored. Call it right after the attempt. */
export function storedAttempt(sequence: number, attempt: Attempt): DeliveryAttempt {
  const { durationMs, status, error, retryMs } = attempt
  return {
    at: Math.round(Date.now() - durationMs),
    sequence,
    durationMs: Math.round(durationMs),
    ...(status !== undefined && { status }),
    ...(error !== undefined && { error }),
    ...(retryMs !== undefined && { retryMs: Math.round(retryMs) }),
  }
}

/** Returns a config's health after the attempts for one event, which may not be settled yet. */
export function healthAfter(before: DeliveryHealth, tries: readonly DeliveryAttempt[]): DeliveryHealth {
  const { status: lastStatus, error: lastError } = tries.at(-1) ?? {}
  return {
    attempts: before.attempts + tries.length,
    delivered: before.delivered,
    dropped: before.dropped,
    lastAttemptAt: timestamp(),
    // Only this event's errors are included, because an earlier error must not appear next to a success.
    ...(lastStatus !== undefined && { lastStatus }),
    ...(lastError !== undefined && { lastError }),
    tries: [...(before.tries ?? []), ...tries].slice(-triesMax),
    ...(before.lost !== undefined && { lost: before.lost }),
  }
}

/** Returns the settlement for an event that was delivered or dropped. */
export function settlementOf(
  { health: before, settled }: Pick<PushConfig, 'health' | 'settled'>,
  { event, resend }: Pick<NextEvent, 'event' | 'resend'>,
  { result, tries }: { result: DeliveryResult; tries: readonly DeliveryAttempt[] },
): Settlement {
  const { sequence, last } = event
  const health = healthAfter(before, tries)
  const isDelivered = result.outcome === 'delivered'
  if (isDelivered) health.delivered += 1
  else {
    const reason = reasonOf(result)
    health.dropped = { ...before.dropped, [reason]: (before.dropped[reason] ?? 0) + 1 }
  }
  const { lost = [] } = before
  const after = isDelivered ? removeLost(lost, sequence) : addLost(lost, sequence, Date.now())
  if (after.length > 0) health.lost = [...after]
  else delete health.lost
  if (resend === undefined) return { settled: sequence, open: !last, health }
  return { settled, open: true, health, resend: { before: resend, after: withoutFirst(resend) } }
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
