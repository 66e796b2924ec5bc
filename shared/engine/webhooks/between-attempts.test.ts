import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { expect, test } from 'vitest'
import { MemoryWebhooks } from '../store/memory/webhooks.ts'
import { Deliverer } from './deliverer.ts'
import { asNew, endedTask, fixture } from './dispatcher-fixture.cases.ts'
import { Registrations } from './registrations.ts'

/** Creates a process that waits to retry its first event, and another process of the same agent. */
async function betweenAttempts(longRunning: boolean) {
  const receiver = await WebhookReceiver.start({ answer: 503 })
  const { promise: waited, resolve: goOn } = Promise.withResolvers<void>()
  const deliverer = new Deliverer({ allowed: parseAllowedHosts('127.0.0.1'), wait: () => waited })
  const memory = new MemoryWebhooks()
  const { store, open } = await fixture({ deliverer })
  const process = () =>
    new Registrations({ stored: store.webhooks, memory, check: async () => {}, shared: true })
  const [here, there] = [process(), process()]
  const { dispatcher } = open({ registrations: here })
  const { before, after } = await endedTask(store)
  await here.set(after, { id: 'c', url: receiver.url }, { ...asNew, longRunning })
  dispatcher.committed(before, after)
  await receiver.waitFor(1)
  return {
    receiver,
    there,
    store,
    task: after,
    dispatcher,
    goOn,
    [Symbol.asyncDispose]: async () => {
      await dispatcher.drain(1000)
      await deliverer[Symbol.asyncDispose]()
      await receiver[Symbol.asyncDispose]()
    },
  }
}

test.each([true, false])(
  'discards a pending event or retry when another process deletes its config (long_running %s)',
  async (longRunning) => {
    await using fixture = await betweenAttempts(longRunning)
    const { receiver, there, task, dispatcher, goOn } = fixture
    await there.remove(task, 'c')
    goOn()
    await expect.poll(() => dispatcher.queued).toBe(0)
    expect(receiver.posts.length).toBe(1)
  },
)

test.each([true, false])(
  'sends events only to the new config when another process replaces it (long_running %s)',
  async (longRunning) => {
    await using fixture = await betweenAttempts(longRunning)
    const { receiver, there, task, dispatcher, goOn } = fixture
    await using other = await WebhookReceiver.start()
    const again = { longRunning, settled: 2, open: true, isNew: false }
    await there.set(task, { id: 'c', url: other.url }, again)
    goOn()
    await other.waitFor(1)
    await expect.poll(() => dispatcher.queued).toBe(0)
    expect(receiver.posts.length).toBe(1)
    expect(other.posts.map(({ event }) => event.sequence)).toEqual([3])
  },
)

test('discards a pending event when its task is cleared', async () => {
  await using fixture = await betweenAttempts(true)
  const { receiver, store, task, dispatcher, goOn } = fixture
  await store.clearContext(task.contextId, task.owner)
  goOn()
  await expect.poll(() => dispatcher.queued).toBe(0)
  expect(receiver.posts.length).toBe(1)
})

test.each([true, false])(
  'shows the owner the result of each attempt while an event is retried (long_running %s)',
  async (longRunning) => {
    await using fixture = await betweenAttempts(longRunning)
    const { there, task, goOn } = fixture
    const health = async () => (await there.find(task, 'c'))?.health
    const failed = { lastStatus: 503, lastError: 'The receiver responded with 503' }
    await expect.poll(health).toMatchObject({ attempts: 1, delivered: 0, dropped: {}, ...failed })
    goOn()
    await expect.poll(health).toMatchObject({ attempts: 9, dropped: { exhausted: 3 }, ...failed })
  },
)
