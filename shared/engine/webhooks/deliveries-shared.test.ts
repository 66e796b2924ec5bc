import { makeLog } from '@parley/kit/process/log'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { MemoryWebhooks } from '../store/memory/webhooks.ts'
import { openRedisWebhooks } from '../store/redis/webhooks.ts'
import type { Delivery, DeliveryResult } from './deliverer.ts'
import { Deliveries } from './deliveries.ts'
import { endedTask, fixture, inline } from './dispatcher-fixture.cases.ts'
import { Registrations } from './registrations.ts'

describe.skipIf(!hasRedis)('resends of several processes (needs redis-server)', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis()
  })
  afterAll(() => redis[Symbol.asyncDispose]())

  test('of two operators at two processes one succeeds, each event is sent once and in order, and a process that dies is replaced', async () => {
    const log = makeLog({ level: 'silent', name: 'test' })
    const sent: number[] = []
    let hangs = true
    const deliver = async ({ body, signal, onAttempt }: Delivery): Promise<DeliveryResult> => {
      if (hangs) {
        await new Promise((resolve) => signal?.addEventListener('abort', resolve))
        return { outcome: 'aborted', attempts: 0 }
      }
      sent.push(JSON.parse(body.toString()).sequence)
      onAttempt?.({ number: 1, durationMs: 1, status: 200, willRetry: false })
      return { outcome: 'delivered', attempts: 1, lastStatus: 200 }
    }
    const { store, open } = await fixture({ deliverer: { deliver }, pollIntervalMs: 200, leaseMs: 600 })
    const process = async () => {
      const memory = await openRedisWebhooks({ url: redis.url, log, agentId: 'resends' })
      const registrations = new Registrations({
        stored: new MemoryWebhooks(),
        memory,
        check: async () => {},
        shared: true,
        countEvents: (ids) => store.countEvents(ids),
      })
      const { dispatcher } = open({ registrations })
      await dispatcher.start()
      return { memory, registrations, dispatcher, deliveries: new Deliveries({ registrations, store }) }
    }
    const [one, two] = [await process(), await process()]
    const { after: task } = await endedTask(store)
    const settled = { longRunning: false, settled: 3, open: false, isNew: true }
    await one.registrations.set(task, inline('c'), settled)
    const results = await Promise.allSettled(
      [one, two].map(({ deliveries }) => deliveries.resend(task.id, 'c', { sequence: 1 })),
    )
    expect(results.map(({ status }) => status).toSorted((a, b) => a.localeCompare(b))).toEqual([
      'fulfilled',
      'rejected',
    ])
    const [sender, other] = results[0]?.status === 'fulfilled' ? [one, two] : [two, one]
    // The connection of the sender is lost, so that it can neither renew nor release its lease.
    await sender.memory[Symbol.asyncDispose]()
    hangs = false
    await expect.poll(() => sent.length, { timeout: 20_000 }).toBe(3)
    await expect
      .poll(async () => (await other.deliveries.find(task.id, 'c')).state, { timeout: 20_000 })
      .toBe('delivered')
    expect(sent).toEqual([1, 2, 3])
    await Promise.all([sender.dispatcher.drain(100), other.dispatcher.drain(1000)])
    await other.memory[Symbol.asyncDispose]()
  }, 60_000)
})
