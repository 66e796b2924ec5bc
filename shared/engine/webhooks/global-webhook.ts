import type { Log } from '@parley/kit/process/log'
import { hostOf } from './delivery-queue.ts'
import type { GlobalWebhook } from './event-buffer.ts'

/**
 * Settings win over the manifest (spec/webhooks.md#resolution-order). The manifest's token is for the manifest's URL: it never goes to
 * another one.
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

/** A global webhook that the guard would refuse is a warning at the start: the agent works without it. */
export async function warnOfRefused(
  webhook: GlobalWebhook,
  check: (receiver: GlobalWebhook) => Promise<void>,
  log: Pick<Log, 'warn'>,
): Promise<void> {
  try {
    await check(webhook)
  } catch (error) {
    log.warn({ host: hostOf(webhook.url), reason: (error as Error).message }, 'the global webhook is refused')
  }
}
