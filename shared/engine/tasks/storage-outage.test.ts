import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { testAgent } from '@parley/agent/internal/testing'
import type { WireEvent } from '@parley/client/internal/client'
import { ParleyError } from '@parley/wire/errors'
import { expect, test } from 'vitest'
import type { Store } from '../store/store.ts'

const away = () => new ParleyError('Unavailable', { message: 'The storage does not answer' })

/** Makes the method fail several times, like an unavailable store. */
function failing(
  store: Store,
  name: 'commitTask' | 'contextHistory' | 'loadTask',
  { times }: { times: number },
) {
  const working = store[name].bind(store) as (...given: unknown[]) => Promise<unknown>
  let left = times
  const replaced = async (...given: unknown[]) => {
    if (left <= 0) return working(...given)
    left -= 1
    throw away()
  }
  Object.assign(store, { [name]: replaced })
  return { left: () => left }
}

test('a task waits instead of failing if the store is unavailable while the task is prepared for its handler', async () => {
  let runs = 0
  await using agent = await testAgent({ handle: () => `done ${(runs += 1)}` })
  const alice = agent.caller('alice')
  const first = await alice.sendAndWait('first')
  const { store } = agent.app.services
  const history = failing(store, 'contextHistory', { times: 2 })
  const task = await alice.send({ text: 'second', contextId: first.context_id, referenceTaskIds: [first.id] })
  const done = await alice.wait(task.id, { signal: AbortSignal.timeout(60_000) })
  expect(done.status).toMatchObject({ state: 'completed' })
  expect([runs, history.left()]).toEqual([2, 0])
})

test('a queued task is loaded later, without a restart, if the store is unavailable when it is loaded', async () => {
  const release = Promise.withResolvers<void>()
  await using agent = await testAgent({ concurrency: 1, handle: () => release.promise.then(() => 'done') })
  const alice = agent.caller('alice')
  const first = await alice.send('first')
  // The message is too large for the cache of new tasks.
  const { id } = await alice.send('a'.repeat(20_000))
  const reads = failing(agent.app.services.store, 'loadTask', { times: 2 })
  release.resolve()
  const signal = AbortSignal.timeout(20_000)
  expect((await alice.wait(id, { signal })).status.state).toBe('completed')
  expect((await alice.wait(first.id, { signal })).status.state).toBe('completed')
  expect(reads.left()).toBe(0)
})

test.each([1, 2])(
  'a task continues, notifies its subscribers and runs once if the response to commit %i is lost',
  async (nth) => {
    let runs = 0
    const handle = async () => {
      runs += 1
      await wait(50)
      return 'done'
    }
    await using agent = await testAgent({ handle })
    const { store, figures } = agent.app.services
    const commit = store.commitTask.bind(store)
    let seen = 0
    store.commitTask = async (record) => {
      const stored = await commit(record)
      seen += 1
      if (seen >= nth && seen < nth + 2) throw away()
      return stored
    }
    const events: WireEvent[] = []
    const signal = AbortSignal.timeout(60_000)
    for await (const event of agent.caller('alice').stream('go', undefined, { signal })) events.push(event)
    expect(events.at(-1)).toMatchObject({
      kind: 'status-update',
      final: true,
      status: { state: 'completed' },
    })
    // A subscriber may see the end before the runner sees its own commit.
    await expect.poll(() => figures.completed).toBe(1)
    expect(runs).toBe(1)
  },
)

test('a result that cannot be committed during a store outage is committed later, and the handler runs once', async () => {
  let runs = 0
  const store: { open?: Store } = {}
  const handle = () => {
    runs += 1
    if (store.open !== undefined) failing(store.open, 'commitTask', { times: 3 })
    return 'done'
  }
  await using agent = await testAgent({ handle })
  store.open = agent.app.services.store
  const done = await agent.caller('alice').sendAndWait('go')
  expect([done.status.state, runs]).toEqual(['completed', 1])
  const stored = await store.open.loadTask(done.id)
  expect(stored).toMatchObject({ starts: 1 })
})

/** Rejects the runner's commits until the test restores the store. Cancellations succeed. */
function refusesRunner(store: Store) {
  const commit = store.commitTask.bind(store)
  const state = { away: true }
  const tried = Promise.withResolvers<void>()
  store.commitTask = (record) => {
    if (!state.away || record.status.state === 'canceled') return commit(record)
    tried.resolve()
    return Promise.reject(away())
  }
  return { tried: tried.promise, comeBack: () => (state.away = false) }
}

test('a task canceled while its deadline passes and its `working` commit fails stays canceled, with one final event', async () => {
  const aborted = Promise.withResolvers<unknown>()
  const handle = ({ signal }: { signal: AbortSignal }) =>
    new Promise<string>((resolve) =>
      signal.addEventListener('abort', () => {
        aborted.resolve((signal.reason as Error).cause)
        resolve('late')
      }),
    )
  await using agent = await testAgent({ handle, deadlineMs: 100 })
  const { store, scheduler } = agent.app.services
  const storage = refusesRunner(store)
  const alice = agent.caller('alice')
  const { id } = await alice.send('go')
  await storage.tried
  expect(await aborted.promise).toBe('deadline')
  const canceled = await alice.cancel(id)
  storage.comeBack()
  await expect.poll(() => scheduler.active, { timeout: 10_000 }).toBe(0)
  expect(await alice.get(id)).toEqual(canceled)
  const events = (await Array.fromAsync(alice.resubscribe(id, 0))) as WireEvent[]
  expect(events.map((event) => [event.sequence, event.kind])).toEqual([[1, 'status-update']])
})

test('a task canceled while its process stops and its `working` commit fails stays canceled and does not run again', async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-storage-away-'))
  let stopping = false
  const handle = ({ signal }: { signal: AbortSignal }) =>
    new Promise<string>((resolve) =>
      signal.addEventListener('abort', () => {
        stopping = true
        resolve('late')
      }),
    )
  let id = ''
  {
    await using agent = await testAgent({ handle }, { dataDir, drainMs: 50 })
    const { store, engine } = agent.app.services
    const commit = store.commitTask.bind(store)
    const tried = Promise.withResolvers<void>()
    store.commitTask = async (record) => {
      if (record.status.state === 'canceled') return commit(record)
      tried.resolve()
      if (!stopping) throw away()
      // The store is available again, and a concurrent cancellation is the first commit.
      const task = await store.loadTask(id)
      if (task?.status.state === 'submitted') await engine.change(task, () => ({ kind: 'cancel' }))
      return commit(record)
    }
    id = (await agent.caller('alice').send('go')).id
    await tried.promise
    await agent.app[Symbol.asyncDispose]()
  }
  let runs = 0
  await using again = await testAgent({ handle: () => `start ${(runs += 1)}` }, { dataDir })
  expect((await again.caller('alice').get(id)).status.state).toBe('canceled')
  expect(runs).toBe(0)
  await rm(dataDir, { recursive: true, force: true })
})
