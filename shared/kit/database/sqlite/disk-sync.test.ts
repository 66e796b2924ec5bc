import { expect, test } from 'vitest'
import { DiskWaits } from './disk-sync.ts'

test('a commit without a sync is followed by a sync, which is retried if it fails', async () => {
  const { promise: onDisk, resolve } = Promise.withResolvers<void>()
  const said: string[] = []
  let failures = 2
  using waits = new DiskWaits({
    set: (wanted) => said.push(wanted ? 'waits' : 'does not wait'),
    waitOnce: async () => {
      waits.next(true)
      failures -= 1
      if (failures >= 0) throw new Error('full')
      waits.committed()
      resolve()
    },
    withinMs: 5,
  })
  waits.next(false)
  waits.committed()
  waits.next(false)
  waits.committed()
  expect(said).toEqual(['does not wait'])
  await onDisk
  expect(said).toEqual(['does not wait', 'waits'])
  expect(failures).toBe(-1)
})

test('a commit with a sync also covers earlier commits, so no further sync follows', async () => {
  let followed = 0
  using waits = new DiskWaits({ set: () => {}, waitOnce: async () => void (followed += 1), withinMs: 0 })
  waits.next(false)
  waits.committed()
  waits.next(true)
  waits.committed()
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(followed).toBe(0)
})

test('no sync follows disposal, even if one fails at that moment', async () => {
  const failed = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  let times = 0
  const waitOnce = () => {
    times += 1
    asked.resolve()
    return failed.promise
  }
  const waits = new DiskWaits({ set: () => {}, waitOnce, withinMs: 0 })
  waits.next(false)
  waits.committed()
  await asked.promise
  waits[Symbol.dispose]()
  failed.reject(new Error('closed'))
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(times).toBe(1)
})
