import type { PushConfig } from '@parley/engine/store/webhook-store'

/** TaskPushNotificationConfig, for the task's owner alone: the token stands in it, and how the deliveries went. */
export function pushConfigOut({ task, id, url, token, authentication, longRunning, health }: PushConfig) {
  return {
    id: task.id,
    push_notification_config: { id, url, token, authentication },
    long_running: longRunning,
    attempts: health.attempts,
    delivered: health.delivered,
    dropped: health.dropped,
    last_status: health.lastStatus ?? null,
    last_error: health.lastError ?? null,
    last_attempt_at: health.lastAttemptAt ?? null,
  }
}
