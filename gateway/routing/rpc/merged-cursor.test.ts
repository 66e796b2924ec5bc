import { randomBytes, randomUUID } from 'node:crypto'
import { Cursors } from '@parley/kit/database/cursor'
import { expect, test } from 'vitest'
import { cursorMaxLength, MergedCursor, type Progress } from './merged-cursor.ts'

const cursors = new MergedCursor(new Cursors(randomBytes(32), cursorMaxLength))
const at = '2026-01-01T00:00:00.000000+00:00'
const untouched = (agent: string): Progress => ({ agent, page: null, last: null })

test('a cursor opens to the sealed positions of the agents that still exist', () => {
  const [sky, board, sea] = [randomUUID(), randomUUID(), randomUUID()]
  const all: Progress[] = [
    { agent: sky, page: null, last: { at, id: randomUUID() } },
    { agent: board, page: 'page', last: null },
    untouched(sea),
  ]
  const { cursor, left } = cursors.seal('tasks/list', 'alice', all)
  expect(left).toEqual([])
  expect(cursors.open('tasks/list', 'alice', cursor, [sky, board, sea])).toEqual({ passed: 0, progress: all })
  expect(cursors.open('tasks/list', 'alice', cursor, [sea]).progress).toEqual([untouched(sea)])
})

test('a cursor keeps the number of items of the agents that are on earlier pages', () => {
  const sea = untouched(randomUUID())
  const { cursor } = cursors.seal('ListTasks', 'alice', [sea], 17)
  expect(cursors.open('ListTasks', 'alice', cursor, [sea.agent])).toEqual({ passed: 17, progress: [sea] })
})

test('a cursor fits into a header, and agents that do not fit into the cursor are returned', () => {
  const all = Array.from({ length: 1000 }, () => ({
    agent: randomUUID(),
    page: 'p'.repeat(60),
    last: { at, id: randomUUID() },
  }))
  const { cursor, left } = cursors.seal('tasks/list', 'alice', all)
  expect(cursor.length).toBeLessThanOrEqual(cursorMaxLength)
  const ids = all.map(({ agent }) => agent)
  const { progress: kept } = cursors.open('tasks/list', 'alice', cursor, ids)
  expect(kept.length).toBeGreaterThan(40)
  expect([...kept, ...left]).toEqual(all)
})
