import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import { timestamp } from '@parley/wire/model/timestamp'
import type { SharedWebhooks } from '../store/redis/webhooks.ts'
import type { PushConfig, TaskKey, WebhookStore } from '../store/webhook-store.ts'

/** The config id of the global webhook. It cannot collide with callers' configs, which use UUIDs. */
export const globalId = ''

/** The global webhook's progress for each task, which all processes share. */
export interface GlobalProgress {
  store: WebhookStore
  find(task: TaskKey): Promise<PushConfig | undefined>
  /**
   * Returns the existing progress, or creates one that starts after event `settled`. Returns undefined if
   * there is no capacity.
   * @throws ParleyError Unavailable
   */
  open(task: TaskKey, settled: number): Promise<PushConfig | undefined>
}

/**
 * Stores the progress for each task as a config that is not `long_running`. The receiver comes from this
 * process's settings.
 */
export function globalProgress(
  store: SharedWebhooks,
  webhook: { url: string; token?: string | undefined },
): GlobalProgress {
  const { url, token } = webhook
  const find = async (task: TaskKey): Promise<PushConfig | undefined> => {
    const found = await store.findPushConfig(task, globalId)
    return found === undefined ? undefined : { ...found, url, ...(token !== undefined && { token }) }
  }
  const open = async (task: TaskKey, settled: number) => {
    const existing = await find(task)
    if (existing !== undefined) return existing
    const config: PushConfig = {
      task,
      id: globalId,
      revision: randomUUID(),
      setAt: timestamp(),
      url,
      longRunning: false,
      settled,
      open: true,
      health: { attempts: 0, delivered: 0, dropped: {} },
    }
    try {
      await store.addPushConfig(config)
    } catch (error) {
      if (error instanceof ParleyError && error.data['reason'] === 'webhooks_full') return undefined
      throw error
    }
    return find(task)
  }
  return { store, find, open }
}
