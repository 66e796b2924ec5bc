import type { StatusUpdate } from '@parley/wire/model/event'
import { timestamp } from '@parley/wire/model/timestamp'
import { expect, test } from 'vitest'
import type { BusMessage, EventBus } from './event-bus.ts'

/** Two ends of one bus. For an adapter that connects processes, each end belongs to a different process. */
export interface OpenBuses extends AsyncDisposable {
  here: EventBus
  there: EventBus
}

export function statusUpdate(taskId: string, sequence: number): StatusUpdate {
  const at = timestamp()
  return {
    kind: 'status-update',
    eventId: `event-${taskId}-${sequence}`,
    sequence,
    timestamp: at,
    taskId,
    contextId: 'context',
    status: { state: 'working', timestamp: at },
    final: false,
  }
}

/** The conformance test cases of the port. Each adapter runs them. */
export function eventBusCases(name: string, open: () => Promise<OpenBuses>): void {
  test(`${name}: a subscriber receives its task's messages in order from every process, and none from other tasks`, async () => {
    await using buses = await open()
    const heard = { here: [] as number[], there: [] as number[] }
    using here = buses.here.subscribe('a', (item) => heard.here.push(sequenceOf(item)))
    using there = buses.there.subscribe('a', (item) => heard.there.push(sequenceOf(item)))
    await Promise.all([here.ready, there.ready])
    for (const sequence of [1, 2, 3]) {
      buses.here.publish('b', [statusUpdate('b', sequence)])
      buses.here.publish('a', [statusUpdate('a', sequence)])
    }
    buses.here.publish('a', [statusUpdate('a', 4), statusUpdate('a', 5)])
    await until(() => heard.there.length === 5)
    expect(heard).toEqual({ here: [1, 2, 3, 4, 5], there: [1, 2, 3, 4, 5] })
  })

  test(`${name}: an event arrives unchanged`, async () => {
    await using buses = await open()
    const heard: BusMessage[] = []
    using subscription = buses.there.subscribe('a', (item) => heard.push(item))
    await subscription.ready
    const event = statusUpdate('a', 1)
    event.status.message = {
      role: 'agent',
      parts: [{ kind: 'text', text: 'Zürich \u{1F600} \u0000 "' }],
      messageId: 'm',
      contextId: 'context',
      taskId: 'a',
    }
    buses.here.publish('a', [event])
    await until(() => heard.length === 1)
    expect(heard).toEqual([event])
  })

  test(`${name}: a disposed subscription receives nothing, while the others continue to receive messages`, async () => {
    await using buses = await open()
    const heard = { left: 0, stays: 0 }
    const left = buses.there.subscribe('a', () => (heard.left += 1))
    using stays = buses.there.subscribe('a', () => (heard.stays += 1))
    await Promise.all([left.ready, stays.ready])
    left[Symbol.dispose]()
    left[Symbol.dispose]()
    buses.here.publish('a', [statusUpdate('a', 1)])
    await until(() => heard.stays === 1)
    expect(heard).toEqual({ left: 0, stays: 1 })
  })

  test(`${name}: a working bus responds to ping`, async () => {
    await using buses = await open()
    await expect(buses.here.ping()).resolves.toBeUndefined()
  })
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 5))
}

function sequenceOf(item: BusMessage): number {
  return item.kind === 'status-update' ? item.sequence : -1
}
