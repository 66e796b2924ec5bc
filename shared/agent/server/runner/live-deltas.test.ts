import { InProcessEventBus } from '@parley/engine/events/in-process'
import { expect, test } from 'vitest'
import { LiveDeltas } from './live-deltas.ts'

test('deltas that are published after the handler has ended have the ID of its artifact', () => {
  const bus = new InProcessEventBus()
  const published: string[] = []
  bus.subscribe('task', (item) => {
    if (item.kind === 'artifact-delta') published.push(item.artifact.artifactId)
  })
  const deltas = new LiveDeltas(bus, { id: 'task', contextId: 'context' })
  deltas.add({ kind: 'text', text: 'one' })
  deltas.add({ kind: 'text', text: 'two' }, { key: 'other', name: 'other' })
  const [first, second] = [...deltas.artifactIds.values()]
  expect(published).toEqual([])
  deltas.goLive()
  deltas.add({ kind: 'text', text: 'three' })
  expect(published).toEqual([first, second, first])
  expect(second).not.toBe(first)
})
