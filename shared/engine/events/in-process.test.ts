import { expect, test } from 'vitest'
import { eventBusCases } from './event-bus.cases.ts'
import { InProcessEventBus } from './in-process.ts'

eventBusCases('in-process', async () => {
  const bus = new InProcessEventBus()
  return { here: bus, there: bus, [Symbol.asyncDispose]: () => bus[Symbol.asyncDispose]() }
})

test('removes a topic that has no subscribers', () => {
  const bus = new InProcessEventBus()
  bus.subscribe('a', () => {})[Symbol.dispose]()
  expect(bus.topics).toBe(0)
})
