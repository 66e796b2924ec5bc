import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { Batches, type Outcome } from './batches.ts'

interface Item {
  _id: string
  chars?: number
}

/** Commands that end when the test lets them. */
function batchesOf(outcomeOf: (item: Item) => Outcome<string> = ({ _id }) => ({ value: _id })) {
  const sent: { ids: string[]; end: PromiseWithResolvers<void> }[] = []
  const batches = new Batches<Item, string>({
    charsOf: ({ chars = 1 }) => chars,
    write: async (items) => {
      const end = Promise.withResolvers<void>()
      sent.push({ ids: items.map(({ _id }) => _id), end })
      await end.promise
      return items.map(outcomeOf)
    },
  })
  return { batches, sent, idsSent: () => sent.map(({ ids }) => ids) }
}

const named = (ids: string) => ids.split('').map((_id) => ({ _id }))

describe('writes that share commands', () => {
  test('the items of one turn share a command, in the order of their ids', async () => {
    const { batches, sent, idsSent } = batchesOf()
    const results = Promise.all(named('cab').map((item) => batches.add(item)))
    await nextTurn()
    expect(idsSent()).toEqual([['a', 'b', 'c']])
    sent[0]?.end.resolve()
    expect(await results).toEqual(['c', 'a', 'b'])
  })

  test('each item has its own outcome', async () => {
    const { batches, sent } = batchesOf(({ _id }) =>
      _id === 'b' ? { error: new Error('refused') } : { value: _id },
    )
    const results = Promise.allSettled(named('abc').map((item) => batches.add(item)))
    await nextTurn()
    sent[0]?.end.resolve()
    expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  })

  test('the failure of a command is the outcome of all its items, and the next command is sent', async () => {
    const { batches, sent, idsSent } = batchesOf()
    const results = Promise.allSettled(named('ab').map((item) => batches.add(item)))
    await nextTurn()
    sent[0]?.end.reject(new Error('disconnected'))
    expect(await results).toEqual([
      { status: 'rejected', reason: new Error('disconnected') },
      { status: 'rejected', reason: new Error('disconnected') },
    ])
    void batches.add({ _id: 'c' })
    await nextTurn()
    expect(idsSent()).toEqual([['a', 'b'], ['c']])
  })

  test('an item without an outcome fails', async () => {
    const batches = new Batches<Item, string>({ charsOf: () => 1, write: async () => [] })
    await expect(batches.add({ _id: 'a' })).rejects.toThrow('missing')
  })

  test('items wait while two commands are in progress, and then share one', async () => {
    const { batches, sent, idsSent } = batchesOf()
    for (const item of named('ab')) {
      void batches.add(item)
      await nextTurn()
    }
    for (const item of named('cdef')) {
      void batches.add(item)
      await nextTurn()
    }
    expect(idsSent()).toEqual([['a'], ['b']])
    sent[1]?.end.resolve()
    await nextTurn()
    await nextTurn()
    expect(idsSent()).toEqual([['a'], ['b'], ['c', 'd', 'e', 'f']])
  })

  test('a command has at most 32 items and 512 KiB, and a larger item is sent by itself without waiting', async () => {
    const { batches, sent, idsSent } = batchesOf()
    const ids = Array.from({ length: 33 }, (_, number) => String(number).padStart(2, '0'))
    for (const _id of ids) void batches.add({ _id })
    void batches.add({ _id: 'r', chars: 400_000 })
    void batches.add({ _id: 's', chars: 400_000 })
    void batches.add({ _id: 't', chars: 600_000 })
    expect(idsSent()).toEqual([['t']])
    await nextTurn()
    await nextTurn()
    expect(idsSent()).toEqual([['t'], ids.slice(0, 32), ['32', 'r']])
    sent[1]?.end.resolve()
    await nextTurn()
    await nextTurn()
    expect(idsSent().at(-1)).toEqual(['s'])
  })

  test('commands without a response delay others for at most a second', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { batches, idsSent } = batchesOf()
      for (const item of named('abc')) {
        void batches.add(item)
        await nextTurn()
      }
      expect(idsSent()).toHaveLength(2)
      vi.advanceTimersByTime(1000)
      await nextTurn()
      expect(idsSent()).toHaveLength(3)
    } finally {
      vi.useRealTimers()
    }
  })
})
