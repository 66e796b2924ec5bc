import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { CallerView } from '../view.ts'
import { EventRing, liveEventTypes } from './event-ring.ts'
import { EventStream } from './event-stream.ts'

const credentials = { token: '', introspection: { active: true } } as CallerView['credentials']
const operator: CallerView = { caller: 'root', texts: false, credentials }
const alice: CallerView = { caller: 'alice', owner: 'alice', texts: true, credentials }
const wanted = new Set(liveEventTypes)
const task = (owner: string, text = 'secret') => ({
  type: 'task' as const,
  owner,
  data: (texts: boolean) => ({ owner, text: texts ? text : null }),
})

test('an operator without texts reads all entries without the texts of others, a caller its own with texts', () => {
  const ring = new EventRing()
  for (const owner of ['alice', 'bob', 'root', 'alice\u001Fsky']) ring.add(task(owner))
  ring.add({ type: 'load', data: () => ({}) })
  const dataOf = (view: CallerView) =>
    ring
      .read(0, view, wanted)
      .frames.map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? '') as unknown)
  expect(dataOf(operator)).toEqual([
    { owner: 'alice', text: null },
    { owner: 'bob', text: null },
    { owner: 'root', text: 'secret' },
    { owner: 'alice\u001Fsky', text: null },
    {},
  ])
  expect(dataOf(alice)).toEqual([
    { owner: 'alice', text: 'secret' },
    { owner: 'alice\u001Fsky', text: 'secret' },
  ])
})

test('the ring keeps its newest events, and positions before them and of another epoch are not known', () => {
  const ring = new EventRing(2)
  for (const owner of ['a', 'b', 'c']) ring.add(task(owner))
  const [, id = ''] = /^id: (\S+)$/m.exec(ring.resetFrame('test')) ?? []
  const at = (number: number) => id.replace(/\d+$/, String(number))
  expect([0, 1, 2, 3, 4].map((number) => ring.positionOf(at(number)))).toEqual([
    undefined,
    1,
    2,
    3,
    undefined,
  ])
  expect(ring.read(0, operator, wanted)).toMatchObject({ isCut: true, frames: [], position: 3 })
  ring.clear()
  expect([ring.positionOf(at(3)), ring.positionOf('nonsense')]).toEqual([undefined, undefined])
})

test('a stream whose client does not read buffers a bounded number of bytes, then sends reset', async () => {
  const ring = new EventRing(100)
  const listeners = new Set<() => void>()
  const live = {
    ring,
    subscribe: (listen: () => void) => (listeners.add(listen), () => listeners.delete(listen)),
  }
  const stream = new EventStream({ live, view: alice, wanted, lastId: undefined })
  for (let round = 0; round < 50; round += 1) {
    for (let number = 0; number < 50; number += 1) ring.add(task('alice', 'x'.repeat(1000)))
    for (const listen of listeners) listen()
  }
  expect(stream.readableLength).toBeLessThan(512 * 1024)
  let text = ''
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
  while (!text.includes('event: reset')) await once(stream, 'data')
  expect(text).toContain('{"reason":"too_slow"}')
  stream.destroy()
  await once(stream, 'close')
  expect(listeners.size).toBe(0)
})
