import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type TestCaller, testAgent } from '@parley/agent/testing'
import type { WireEvent } from '@parley/client/internal/client'
import { makeLog } from '@parley/kit/process/log'
import { startedTask } from '@parley/tools/testing/stored-task'
import { timestamp } from '@parley/wire/model/timestamp'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { InProcessScheduler } from '../queue/in-process.ts'
import { next, sampleRecord } from '../store/sample-record.cases.ts'
import { expirePauses } from './expiry.ts'
import { recover } from './recovery.ts'

let root: string
beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'parley-recovery-'))
})
afterAll(() => rm(root, { recursive: true, force: true }))
const folder = () => path.join(root, randomUUID())

const events = (alice: TestCaller, id: string) => Array.fromAsync(alice.resubscribe(id, 0))
const brief = (all: WireEvent[]) =>
  all.map((event) => [event.sequence, event.kind === 'status-update' ? event.status.state : 'artifact'])

test.each([
  ['submitted, taken by nobody', 0, false, 1],
  ['submitted, taken when its process died', 1, false, 2],
  ['working when its process died', 1, true, 2],
  ['working, for the second time', 2, true, 3],
])(
  'a task that is %s runs again without repeating its `working` event',
  async (_name, starts, working, expectedStarts) => {
    const dataDir = folder()
    const id = await startedTask(dataDir, { owner: 'alice', starts, working })
    await using agent = await testAgent({ handle: ({ task }) => `start ${task.starts}` }, { dataDir })
    const alice = agent.caller('alice')
    const done = await alice.wait(id)
    expect(done.artifacts[0]?.parts).toMatchObject([{ kind: 'text', text: `start ${expectedStarts}` }])
    expect(brief(await events(alice, id))).toEqual([
      [1, 'working'],
      [2, 'artifact'],
      [3, 'completed'],
    ])
  },
)

test('a task fails with the reason after 3 starts, and its handler is not called', async () => {
  const dataDir = folder()
  const id = await startedTask(dataDir, { owner: 'alice', starts: 3, working: true })
  let runs = 0
  await using agent = await testAgent(
    {
      handle: () => {
        runs += 1
        return 'x'
      },
    },
    { dataDir },
  )
  const { status } = await agent.caller('alice').wait(id)
  expect(status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: expect.stringContaining('3 times') }] },
  })
  expect(runs).toBe(0)
})

test('keeps a pause that a living process commits concurrently after 3 starts', async () => {
  await using agent = await testAgent({ handle: () => 'x' })
  const { store, scheduler } = agent.app.services
  const record = sampleRecord({
    owner: 'alice',
    starts: 3,
    status: { state: 'working', timestamp: timestamp() },
  })
  await store.createTask(record)
  const commit = store.commitTask.bind(store)
  const asked = next(record, 'input-required', { dueAt: Date.now() + 60_000 })
  const late = Promise.withResolvers<boolean>()
  store.commitTask = async (wanted) => {
    store.commitTask = commit
    await commit(asked)
    const stored = await commit(wanted)
    late.resolve(stored)
    return stored
  }
  scheduler.enqueue({ taskId: record.id, version: record.version, owner: 'alice' })
  expect(await late.promise).toBe(false)
  await expect.poll(() => scheduler.active).toBe(0)
  expect(await store.loadTask(record.id)).toEqual(asked)
})

test("with onRestart 'fail', a task that has run fails with the reason, and a task that has not begun runs", async () => {
  const dataDir = folder()
  const ran = await startedTask(dataDir, { owner: 'alice', starts: 1, working: true })
  const waited = await startedTask(dataDir, { owner: 'alice', starts: 0, working: false })
  await using agent = await testAgent({ onRestart: 'fail', handle: () => 'ran' }, { dataDir })
  const alice = agent.caller('alice')
  expect((await alice.wait(ran)).status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: expect.stringContaining('restarted') }] },
  })
  expect((await alice.wait(waited)).status.state).toBe('completed')
})

test('tasks that were running when the process died run one after the other, starting with the fewest starts', async () => {
  const dataDir = folder()
  const twice = await startedTask(dataDir, { owner: 'alice', starts: 2, working: true })
  const once = await startedTask(dataDir, { owner: 'alice', starts: 1, working: true })
  const order: string[] = []
  let atOnce = 0
  let most = 0
  await using agent = await testAgent(
    {
      handle: async ({ task }) => {
        order.push(task.id)
        most = Math.max(most, ++atOnce)
        await new Promise((resolve) => setTimeout(resolve, 50))
        atOnce -= 1
        return 'x'
      },
    },
    { dataDir },
  )
  for (const id of [once, twice]) await agent.caller('alice').wait(id)
  expect([order, most]).toEqual([[once, twice], 1])
})

test('the time for which a suspect task runs alone is measured from its start, even if the agent is slow to start', async () => {
  const order: string[] = []
  await using agent = await testAgent({
    handle: async ({ task }) => {
      order.push(task.id)
      await wait(10)
      return 'x'
    },
  })
  const { services } = agent.app
  const interrupted = [1, 2, 3].map((starts) =>
    sampleRecord({ owner: 'alice', starts: starts % 3, lease: { holder: 'dead', until: 1 } }),
  )
  for (const record of interrupted) await services.store.createTask(record)
  await using scheduler = new InProcessScheduler(1)
  const log = makeLog({ level: 'silent', name: 'test' })
  const { signal } = new AbortController()
  await recover({ ...services, scheduler, log, signal, suspectAloneMs: 5 })
  // This leaves time to recover payments and open the port.
  await wait(100)
  scheduler.start((job) => services.runner.run(job))
  const [once, twice, released] = interrupted.map(({ id }) => id)
  await expect.poll(() => order).toEqual([released, once, twice])
})

test('during a graceful shutdown, running handlers finish, new work is refused with 503, and streams end', async () => {
  const dataDir = folder()
  const release = Promise.withResolvers<void>()
  let id: string
  {
    await using agent = await testAgent(
      {
        handle: async () => {
          await release.promise
          return 'finished'
        },
      },
      { dataDir },
    )
    const alice = agent.caller('alice')
    id = (await alice.send('go')).id
    await alice.wait(id, { untilStates: ['working'] })
    const health = async () => (await fetch(`${agent.url}/health`)).status
    expect(await health()).toBe(200)
    const stopping = agent.app[Symbol.asyncDispose]()
    await expect(alice.send('more')).rejects.toMatchObject({
      code: -32042,
      status: 503,
      data: { reason: 'draining' },
    })
    expect((await alice.get(id)).status.state).toBe('working')
    expect(await health()).toBe(503)
    release.resolve()
    await stopping
  }
  await using again = await testAgent({ handle: () => 'must not run again' }, { dataDir })
  expect((await again.caller('alice').get(id)).artifacts[0]?.parts).toMatchObject([
    { kind: 'text', text: 'finished' },
  ])
})

test('a handler that exceeds the shutdown timeout is released, and the interrupted start does not count', async () => {
  const dataDir = folder()
  let id = ''
  let reason: unknown
  {
    await using agent = await testAgent(
      {
        handle: ({ signal }) =>
          new Promise((resolve) =>
            signal.addEventListener('abort', () => {
              reason = signal.reason
              resolve('too late')
            }),
          ),
      },
      { dataDir, drainMs: 50 },
    )
    const alice = agent.caller('alice')
    id = (await alice.send('go')).id
    await alice.wait(id, { untilStates: ['working'] })
    const stream = await fetch(agent.url, {
      method: 'POST',
      headers: { authorization: `Bearer ${alice.token}` },
      body: Buffer.from(
        JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/resubscribe', params: { task_id: id } }),
      ),
    })
    const rest = stream.text()
    await agent.app[Symbol.asyncDispose]()
    expect(await rest).toMatch(/: the server is stopping\n\n$/)
  }
  expect(reason).toMatchObject({ name: 'AbortError', cause: 'stopping' })
  await using again = await testAgent({ handle: ({ task }) => `start ${task.starts}` }, { dataDir })
  const alice = again.caller('alice')
  expect((await alice.wait(id)).artifacts[0]?.parts).toMatchObject([{ kind: 'text', text: 'start 1' }])
  expect(brief(await events(alice, id))).toEqual([
    [1, 'working'],
    [2, 'artifact'],
    [3, 'completed'],
  ])
})

test('a paused task fails after 7 days, and an answered task continues', async () => {
  await using agent = await testAgent({
    handle: ({ ask, history }) => (history.length === 1 ? ask('what?') : 'thanks'),
  })
  const alice = agent.caller('alice')
  const [forgotten, answered] = [await alice.sendAndWait('a'), await alice.sendAndWait('b')]
  await alice.send({ text: 'that', taskId: answered.id })
  await alice.wait(answered.id)
  const day = 24 * 60 * 60 * 1000
  await expirePauses(agent.app.services.engine, Date.now() + 6.9 * day)
  expect((await alice.get(forgotten.id)).status.state).toBe('input-required')
  await expirePauses(agent.app.services.engine, Date.now() + 7.1 * day)
  expect((await alice.get(forgotten.id)).status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: expect.stringContaining('7 days') }] },
  })
  expect((await alice.get(answered.id)).status.state).toBe('completed')
})

test('paused and ended tasks survive a restart, and the lifetime counters continue', async () => {
  const dataDir = folder()
  const handle = ({
    text,
    ask,
    history,
  }: {
    text: string
    ask: (prompt: string) => unknown
    history: unknown[]
  }) => (text === 'ask' && history.length === 1 ? ask('what?') : 'done') as string
  let ids: string[]
  {
    await using agent = await testAgent({ handle }, { dataDir })
    const alice = agent.caller('alice')
    ids = [(await alice.sendAndWait('ask')).id, (await alice.sendAndWait('x')).id]
  }
  await using again = await testAgent({ handle }, { dataDir })
  const alice = again.caller('alice')
  const [paused, ended] = ids as [string, string]
  await alice.send({ text: 'that', taskId: paused })
  expect((await alice.wait(paused)).status.state).toBe('completed')
  expect((await alice.get(ended)).status.state).toBe('completed')
  const metrics = await (await fetch(`${again.url}/metrics`)).text()
  expect(metrics).toMatch(/agent_tasks_completed_total\{agent_id="[^"]+",state="completed"\} 2\n/)
})

test("with onRestart 'fail', a handler that outlived an orderly stop does not run again", async () => {
  const dataDir = folder()
  const never = () => new Promise<string>(() => {})
  let id = ''
  {
    await using agent = await testAgent({ onRestart: 'fail', handle: never }, { dataDir, drainMs: 50 })
    const alice = agent.caller('alice')
    id = (await alice.send('go')).id
    await alice.wait(id, { untilStates: ['working'] })
    await agent.app[Symbol.asyncDispose]()
  }
  await using again = await testAgent({ onRestart: 'fail', handle: () => 'twice' }, { dataDir })
  expect((await again.caller('alice').wait(id)).status.state).toBe('failed')
})
