import { expect, test } from 'vitest'
import { LogSync } from './log-sync.ts'

const noCheckpoint = () => {
  throw new Error('unexpected checkpoint')
}

test('a commit that does not wait is followed by a sync', async () => {
  const { promise: onDisk, resolve } = Promise.withResolvers<void>()
  let syncs = 0
  await using log = new LogSync({
    sync: async () => {
      syncs += 1
      resolve()
    },
    checkpoint: noCheckpoint,
    withinMs: 5,
  })
  log.soon()
  log.soon()
  expect(syncs).toBe(0)
  await onDisk
  expect(syncs).toBe(1)
})

test('a sync also covers earlier commits, so no further sync follows', async () => {
  let syncs = 0
  await using log = new LogSync({
    sync: async () => void (syncs += 1),
    checkpoint: noCheckpoint,
    withinMs: 0,
  })
  log.soon()
  await log.now()
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(syncs).toBe(1)
})

test('after a failed sync, only a checkpoint makes commits durable', async () => {
  const order: string[] = []
  let full = true
  await using log = new LogSync({
    sync: async () => {
      order.push('sync')
      if (full) throw new Error('full')
    },
    checkpoint: () => {
      order.push('checkpoint')
      if (full) throw new Error('full')
    },
  })
  await expect(log.now()).rejects.toThrow('full')
  await expect(log.now()).rejects.toThrow('full')
  full = false
  await log.now()
  await log.now()
  expect(order).toEqual(['sync', 'checkpoint', 'checkpoint', 'sync'])
})

test('a sync that begins while another one fails is a checkpoint', async () => {
  const { promise: disk, reject } = Promise.withResolvers<void>()
  let checkpoints = 0
  await using log = new LogSync({ sync: () => disk, checkpoint: () => void (checkpoints += 1) })
  const first = log.now()
  const second = log.now()
  reject(new Error('full'))
  await expect(first).rejects.toThrow('full')
  await second
  expect(checkpoints).toBe(1)
})

test('a failed sync of commits that do not wait is retried', async () => {
  const { promise: onDisk, resolve } = Promise.withResolvers<void>()
  let checkpoints = 0
  await using log = new LogSync({
    sync: async () => {
      throw new Error('full')
    },
    checkpoint: () => {
      checkpoints += 1
      if (checkpoints < 2) throw new Error('full')
      resolve()
    },
    withinMs: 2,
  })
  log.soon()
  await onDisk
  expect(checkpoints).toBe(2)
})

test('disposal waits for a running sync, and none follows', async () => {
  const { promise: disk, reject } = Promise.withResolvers<void>()
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  let syncs = 0
  const log = new LogSync({
    sync: () => {
      syncs += 1
      begin()
      return disk
    },
    checkpoint: noCheckpoint,
    withinMs: 0,
  })
  log.soon()
  await begun
  let disposed = false
  const disposing = log[Symbol.asyncDispose]().then(() => (disposed = true))
  await new Promise((resolve) => setTimeout(resolve, 10))
  expect(disposed).toBe(false)
  reject(new Error('closed'))
  await disposing
  log.soon()
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(syncs).toBe(1)
})
