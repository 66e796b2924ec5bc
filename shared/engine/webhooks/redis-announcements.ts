import { randomUUID } from 'node:crypto'
import { connectRedis, type RedisConnection } from '@parley/kit/process/redis'
import type { TaskKey } from '../store/webhook-store.ts'
import type { Announcements } from './subscribed-tasks.ts'

export interface RedisAnnouncementsOptions extends RedisConnection {
  /** The agent whose processes share announcements. */
  agentId: string
}

interface Announcement extends TaskKey {
  from: string
}

/** Connects to Redis. @throws Error when Redis is unreachable */
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
    announce: ({ id, owner, createdAt }) => {
      const message = JSON.stringify({ from: self, id, owner, createdAt } satisfies Announcement)
      publisher.publish(channel, message).catch(() => {})
    },
    listen: async (onTask) => {
      subscriber.on('message', (_: string, message: string) => {
        const { from, ...task }: Announcement = JSON.parse(message)
        if (from !== self) onTask(task)
      })
      await subscriber.subscribe(channel)
    },
    [Symbol.asyncDispose]: async () => {
      publisher.disconnect()
      subscriber.disconnect()
    },
  }
}
