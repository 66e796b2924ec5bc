import { randomUUID } from 'node:crypto'
import { connectRedis, type RedisConnection } from '@parley/kit/process/redis'
import type { TaskKey } from '../store/webhook-store.ts'
import type { Announcements } from './subscribed-tasks.ts'

export interface RedisAnnouncementsOptions extends RedisConnection {
  /** Whose tasks these are: processes with the same one hear each other. */
  agentId: string
}

interface Told extends TaskKey {
  from: string
}

/** @throws Error when no Redis answers */
export async function openRedisAnnouncements(
  options: RedisAnnouncementsOptions,
): Promise<Announcements & AsyncDisposable> {
  const channel = `parley:{${options.agentId}}:webhook-hints`
  const publisher = await connectRedis({ ...options, options: { enableAutoPipelining: true } })
  const subscriber = await connectRedis({ ...options, options: { enableOfflineQueue: true } }).catch(
    (error: unknown) => {
      publisher.disconnect()
      throw error
    },
  )
  const self = randomUUID()
  return {
    tell: ({ id, owner, createdAt }) => {
      const message = JSON.stringify({ from: self, id, owner, createdAt } satisfies Told)
      publisher.publish(channel, message).catch(() => {})
    },
    listen: async (heard) => {
      subscriber.on('message', (_: string, message: string) => {
        const { from, ...task } = JSON.parse(message) as Told
        if (from !== self) heard(task)
      })
      await subscriber.subscribe(channel)
    },
    [Symbol.asyncDispose]: async () => {
      publisher.disconnect()
      subscriber.disconnect()
    },
  }
}
