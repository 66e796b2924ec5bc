import { AgentIndex } from '@parley/negotiation/index/agent-index'
import { expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { sampleEntry } from '../../registry/store/registry-store.cases.ts'
import { followRegistry } from './follow-registry.ts'

test('an agent is embedded when its texts change, and its vectors are no longer in use when it is removed', () => {
  let change: (id: string, entry: AgentEntry | undefined) => void = () => {}
  const calls: string[] = []
  const index = new AgentIndex()
  followRegistry({ follow: (listener) => void (change = listener) }, index, {
    note: (id) => void calls.push(`note ${id}`),
    remove: (id) => void calls.push(`remove ${id}`),
  })
  const entry = sampleEntry()
  change('sky', entry)
  change('sky', { ...entry, load: entry.load })
  change('sky', { ...entry, description: 'Names the stars' })
  change('sky', undefined)
  expect([calls, index.size]).toEqual([['note sky', 'note sky', 'remove sky'], 0])
})
