import { expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { row } from '../tasks/testing.ts'
import { ChangedTasks, type ChangedTasksSources } from './changed-tasks.ts'

const entry = { id: 'id-sky', slug: 'sky', status: 'ready', load: {} } as AgentEntry

test('an agent that reports new tasks of one time without end is remembered by its last 1,000 only', async () => {
  let first = 0
  const readAll = async () => {
    const tasks = Array.from({ length: 50 }, (_, number) => row(`task-${first + number}`, 1))
    return { answers: [{ entry, value: { tasks, next_cursor: null }, clockSkewMs: 0 }], unread: [] }
  }
  const changed = new ChangedTasks({
    reader: { readable: () => [entry], find: () => entry, readAll },
    registry: { bySlug: () => entry },
    store: { agentsOf: async () => [], find: async () => undefined },
    budget: { spend: () => {} },
  } as unknown as ChangedTasksSources)
  await changed.read()
  for (first = 50; first <= 1000; first += 50) expect((await changed.read()).events).toHaveLength(50)
  // The last 1,000 are known, the first ones are not.
  first = 1000
  expect((await changed.read()).events).toEqual([])
  first = 0
  expect((await changed.read()).events).toHaveLength(50)
})
