import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { makeLog } from '@parley/kit/process/log'
import { expect, test } from 'vitest'
import { BatchedWrites } from './batched-writes.ts'

/** Writes to a list that refuses items as `accepts` says. The timers do not fire within a test. */
function writesTo(accepts: (item: string) => boolean) {
  const lines = new PassThrough()
  const stored = new Set<string>()
  const writes = new BatchedWrites<string>({
    write: async (batch) => {
      if (!batch.every(accepts)) throw new Error('refused')
      for (const item of batch) stored.add(item)
    },
    clean: async () => {},
    what: 'test entries',
    log: makeLog({ level: 'info', name: 'test', destination: lines }),
    everyMs: 3_600_000,
  })
  const flush = async (times: number) => {
    for (let count = 0; count < times; count += 1) await writes.flush()
  }
  return { writes, stored, flush, log: () => text(lines.end()) }
}

test.each([
  ['first', ['bad', 'a', 'b']],
  ['in the middle', ['a', 'bad', 'b']],
  ['last', ['a', 'b', 'bad']],
])(
  'an entry that the storage always refuses is dropped and logged if it is %s, and the others are stored in order',
  async (_, items) => {
    const { writes, stored, flush, log } = writesTo((item) => item !== 'bad')
    for (const item of items) writes.add(item)
    await flush(4)
    expect([...stored]).toEqual(['a', 'b'])
    writes.add('c')
    await flush(1)
    expect([...stored]).toEqual(['a', 'b', 'c'])
    await writes[Symbol.asyncDispose]()
    expect(await log()).toContain('an entry of test entries was dropped')
  },
)

test('no entry is dropped while the storage accepts none', async () => {
  let isAvailable = false
  const { writes, stored, flush, log } = writesTo(() => isAvailable)
  for (const item of ['a', 'b']) writes.add(item)
  await flush(10)
  isAvailable = true
  await flush(1)
  expect([...stored]).toEqual(['a', 'b'])
  await writes[Symbol.asyncDispose]()
  expect(await log()).not.toContain('dropped')
})

test('no entry is dropped while the storage refuses everything that is new, like a full disk', async () => {
  let isFull = false
  const known = new Set<string>()
  const { writes, stored, flush, log } = writesTo((item) => {
    if (!isFull) known.add(item)
    return known.has(item)
  })
  writes.add('a')
  await flush(1)
  isFull = true
  for (const item of ['b', 'c', 'd']) writes.add(item)
  await flush(10)
  isFull = false
  await flush(1)
  expect([...stored]).toEqual(['a', 'b', 'c', 'd'])
  await writes[Symbol.asyncDispose]()
  expect(await log()).not.toContain('dropped')
})

test('many entries that the storage refuses do not stop the others', async () => {
  const { writes, stored, flush } = writesTo((item) => !item.startsWith('bad'))
  for (const item of ['bad 1', 'bad 2', 'bad 3', 'a', 'bad 4', 'b']) writes.add(item)
  await flush(4)
  expect([...stored]).toEqual(['a', 'b'])
  await writes[Symbol.asyncDispose]()
})
