import { setTimeout as wait } from 'node:timers/promises'
import { testAgent } from '@parley/agent/testing'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sampleRecord } from '../store/sample-record.cases.ts'
import { apply } from './transitions.ts'

describe.skipIf(!hasMongodb)('starts of a task in a store that processes share (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  /** Starts a task that runs until its signal aborts. */
  async function runningTask() {
    const aborted = Promise.withResolvers<void>()
    const handle = ({ signal }: { signal: AbortSignal }) =>
      new Promise<string>((resolve) =>
        signal.addEventListener('abort', () => {
          aborted.resolve()
          resolve('late')
        }),
      )
    const agent = await testAgent({ handle }, { env: { STORE_URL: server.newUrl() } })
    const { store } = agent.app.services
    const { id } = await agent.caller('alice').send('go')
    let record = await store.loadTask(id)
    while (record?.status.state !== 'working') {
      await wait(20)
      record = await store.loadTask(id)
    }
    const dispose = () => agent[Symbol.asyncDispose]()
    return { agent, store, record, aborted: aborted.promise, [Symbol.asyncDispose]: dispose }
  }

  test('a living process aborts a task that another process took over, and its start does not count as a crash', async () => {
    await using running = await runningTask()
    const { store, record, aborted } = running
    const { id } = record
    const lease = { holder: 'another', until: Date.now() + 60_000 }
    expect(await store.commitTask({ ...record, version: record.version + 1, starts: 2, lease })).toBe(true)
    await aborted
    await expect.poll(async () => (await store.loadTask(id))?.survived).toBe(1)
    expect(await store.loadTask(id)).toMatchObject({ starts: 2, lease, status: { state: 'working' } })
    await store.noteSurvived(id, 1)
    expect((await store.loadTask(id))?.survived).toBe(1)
  })

  test('a cancellation that a process missed aborts the handler, whose output is discarded', async () => {
    await using running = await runningTask()
    const { agent, store, record, aborted } = running
    const { id } = record
    const canceled = { ...apply(record, { kind: 'cancel' }), version: record.version + 1 }
    expect(await store.commitTask(canceled)).toBe(true)
    await aborted
    await expect.poll(() => agent.app.services.scheduler.active).toBe(0)
    expect(await store.loadTask(id)).toEqual(canceled)
  })

  test('a task fails after 3 starts that crashed its process, but may start up to 10 times otherwise', async () => {
    const ran: string[] = []
    const handle = ({ text }: { text: string }) => `done ${ran.push(text)}`
    await using agent = await testAgent({ handle }, { env: { STORE_URL: server.newUrl() } })
    const { store } = agent.app.services
    const leftBehind = async (starts = 3) => {
      const record = { ...sampleRecord(), owner: 'alice' }
      await store.createTask(record)
      const lease = { holder: 'dead', until: Date.now() - 1 }
      const status = { ...record.status, state: 'working' as const }
      await store.commitTask({ ...record, version: 1, starts, lease, status })
      return record.id
    }
    const survived = await leftBehind()
    await store.noteSurvived(survived, 2)
    const killer = await leftBehind()
    const neverHeard = await leftBehind(10)
    for (let start = 1; start < 10; start += 1) await store.noteSurvived(neverHeard, start)
    const alice = agent.caller('alice')
    const signal = AbortSignal.timeout(100_000)
    expect((await alice.wait(killer, { signal })).status.state).toBe('failed')
    const { status } = await alice.wait(neverHeard, { signal })
    expect(status).toMatchObject({
      state: 'failed',
      message: { parts: [{ text: expect.stringContaining('started 10 times') }] },
    })
    expect((await alice.wait(survived, { signal })).status.state).toBe('completed')
    expect(ran).toHaveLength(1)
  })
})
