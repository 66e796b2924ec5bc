import type { Log } from '@parley/kit/process/log'
import { hostOf } from './delivery-queue.ts'
import type { GlobalWebhook } from './event-buffer.ts'

/**
 * Returns the global webhook. The settings override the manifest (spec/webhooks.md#resolution-order). The
 * manifest's token is sent only to the manifest's URL.
 */
export function globalWebhookOf(
  manifest: GlobalWebhook | undefined,
  settings: { url?: string | undefined; token?: string | undefined },
): GlobalWebhook | undefined {
  const url = settings.url ?? manifest?.url
  if (url === undefined) return undefined
  const token = settings.token ?? (settings.url === undefined ? manifest?.token : undefined)
  return { url, token }
}

/** Logs a warning if the global webhook is not allowed. The agent works without it. */
export async function warnIfRefused(
  webhook: GlobalWebhook,
  check: (receiver: GlobalWebhook) => Promise<void>,
  log: Pick<Log, 'warn'>,
): Promise<void> {
  try {
    await check(webhook)
  } catch (error) {
    log.warn(
      { host: hostOf(webhook.url), reason: error instanceof Error ? error.message : String(error) },
      'the global webhook is refused',
    )
  }
}
