import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import { timestamp } from '@parley/wire/model/timestamp'
import type { SharedWebhooks } from '../store/redis/webhooks.ts'
import type { PushConfig, TaskKey, WebhookStore } from '../store/webhook-store.ts'

/** Stands for the global webhook; callers name theirs by UUIDs. */
export const globalId = ''

/** How far the global webhook has come with each task, known to every process that sends for it. */
export interface GlobalProgress {
  store: WebhookStore
  find(task: TaskKey): Promise<PushConfig | undefined>
  /** As it is, or from the event after the number on; undefined: there is no room. @throws ParleyError Unavailable */
  open(task: TaskKey, settled: number): Promise<PushConfig | undefined>
}

/** A config of its own for each task, which lives as one that is not `long_running`. Where it leads is this process's word. */
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
    const there = await find(task)
    if (there !== undefined) return there
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
