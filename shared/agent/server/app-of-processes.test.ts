import { setTimeout as wait } from 'node:timers/promises'
import type { AgentClient, WireEvent } from '@parley/client/internal/client'
import {
  AgentProcesses,
  eventsOf,
  hasServers,
  isSound,
  type Servers,
  startServers,
} from '@parley/tools/testing/agent-processes'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

type Two = [AgentClient, AgentClient]

describe.skipIf(!hasServers)('processes of one agent (needs mongod, redis-server)', () => {
  let servers: Servers
  beforeAll(async () => {
    servers = await startServers()
  })
  afterAll(() => servers[Symbol.asyncDispose]())

  const limit = () => ({ signal: AbortSignal.timeout(100_000) })
  const started = async (agents: AgentProcesses, text: string, times = 1) => {
    const starts = () => agents.notes(text).filter(({ what }) => what === 'start')
    while (starts().length < times) await wait(20)
    return agents.of(starts().at(-1)?.pid)
  }
  /** Sends messages continuously to both processes; collects the acknowledged tasks and the codes of refused messages. */
  function load(clients: Two, everyMs: number) {
    const [told, refused, stop] = [[] as string[], new Set<number>(), new AbortController()]
    const over = clients.map(async (client, i) => {
      for (let n = 0; !stop.signal.aborted; n += 1) {
        await client.send(`soon ${i} ${n}`).then(
          ({ id }) => told.push(id),
          (error: { code: number }) => refused.add(error.code),
        )
        await wait(everyMs)
      }
    })
    const atLeast = async (count: number) => {
      while (told.length < count) await wait(20)
    }
    const end = async () => {
      stop.abort()
      await Promise.all(over)
    }
    return { told, refused, atLeast, end }
  }
  const healthy = (agents: AgentProcesses) =>
    expect
      .poll(() => Promise.all(agents.all.map(async ({ url }) => (await fetch(`${url}/health`)).status)), {
        timeout: 100_000,
      })
      .toEqual(agents.all.map(() => 200))

  test('a task sent to one process may run on any, and other processes can stream, await and cancel it', async () => {
    await using agents = await AgentProcesses.start(2, servers)
    const [alice] = agents.callers('alice') as Two
    const ran = new Set<string>()
    const streams = Array.from({ length: 16 }, async (_, i) => {
      const events: WireEvent[] = []
      for await (const event of alice.stream(`soon ${i}`, undefined, limit())) events.push(event)
      return events.filter((event) => event.sequence !== undefined && event.sequence > 0)
    })
    for (const events of await Promise.all(streams)) {
      expect(isSound(events)).toBe(true)
      const made = events.find((event) => event.kind === 'artifact-update')
      ran.add(JSON.stringify(made?.artifact.parts[0]))
    }
    expect(ran.size).toBe(2)
    const hanging = await Promise.all(Array.from({ length: 8 }, (_, i) => alice.send(`hang ${i}`)))
    for (let i = 0; i < 8; i += 1) await started(agents, `hang ${i}`)
    expect(
      new Set(
        agents
          .notes()
          .filter(({ text }) => text.startsWith('hang'))
          .map(({ pid }) => pid),
      ).size,
    ).toBe(2)
    for (const { id } of hanging) expect((await alice.cancel(id)).status.state).toBe('canceled')
    await expect.poll(() => agents.notes().filter(({ what }) => what === 'abort').length).toBe(8)
  })

  test('a send that waits returns its ended task, whichever process runs it, even if that process is killed', async () => {
    await using agents = await AgentProcesses.start(2, servers)
    const token = agents.all[0]?.identityProvider.issue('alice') ?? ''
    const send = async (text: string, at: string) => {
      const message = { role: 'ROLE_USER', messageId: text, parts: [{ text }] }
      const response = await fetch(`${at}/a2a/v1`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: text, method: 'SendMessage', params: { message } }),
      })
      const { result } = (await response.json()) as { result: { task: { status: { state: string } } } }
      return result.task.status.state
    }
    const [here = '', there = ''] = agents.all.map(({ url }) => url)
    const many = Array.from({ length: 16 }, (_, i) => send(`soon ${i}`, i % 2 === 0 ? here : there))
    expect(new Set(await Promise.all(many))).toEqual(new Set(['TASK_STATE_COMPLETED']))
    expect(new Set(agents.notes().map(({ pid }) => pid)).size).toBe(2)
    // The remaining process takes over the tasks of the killed one and answers its own clients.
    const slow = [send('slow 1', here), send('slow 2', here), send('slow 3', there), send('slow 4', there)]
    const settled = Promise.allSettled(slow)
    for (const n of [1, 2, 3, 4]) await started(agents, `slow ${n}`)
    await agents.all[1]?.kill()
    const states = (await settled).map((one) => (one.status === 'fulfilled' ? one.value : 'disconnected'))
    expect(states).toEqual(['TASK_STATE_COMPLETED', 'TASK_STATE_COMPLETED', 'disconnected', 'disconnected'])
  })

  test('after kill -9 of the process that runs a task, another process starts it again and no event number is missing', async () => {
    await using agents = await AgentProcesses.start(2, servers)
    const [here, there] = agents.callers('alice') as Two
    const tasks = await Promise.all(['slow 1', 'slow 2'].map((text) => here.send(text)))
    const runner = await started(agents, 'slow 1')
    await started(agents, 'slow 2')
    const at = Date.now()
    await runner.kill()
    const left = runner === agents.all[0] ? there : here
    for (const { id } of tasks) {
      expect((await left.wait(id, limit())).status.state).toBe('completed')
      expect(isSound(await eventsOf(left, id))).toBe(true)
    }
    console.info(`completed ${Date.now() - at} ms after the kill`)
    expect(agents.notes('slow 1').filter(({ what }) => what === 'start')).toHaveLength(2)
    expect(agents.notes('slow 1').filter(({ what }) => what === 'end')).toHaveLength(1)
  })

  test('the task of a process that freezes for 15 s ends once, in another process', async () => {
    await using agents = await AgentProcesses.start(2, servers)
    const [here, there] = agents.callers('alice') as Two
    const { id } = await here.send('slow')
    const runner = await started(agents, 'slow')
    runner.freeze()
    const thawed = wait(15_000).then(() => runner.thaw())
    const left = runner === agents.all[0] ? there : here
    const done = await left.wait(id, limit())
    await thawed
    await healthy(agents)
    // Gives the frozen process time to finish its run.
    await wait(1000)
    expect(done.status.state).toBe('completed')
    for (const client of [here, there]) {
      expect(await client.get(id)).toEqual(done)
      expect(isSound(await eventsOf(client, id))).toBe(true)
    }
    expect(agents.notes('slow').filter(({ what }) => what === 'start')).toHaveLength(2)
  })

  test('every acknowledged task completes when Redis is killed under load and restarts empty', async () => {
    await using agents = await AgentProcesses.start(2, servers)
    const clients = agents.callers('alice') as Two
    const { told, refused, atLeast, end } = load(clients, 20)
    await atLeast(30)
    await servers.redis.kill()
    await wait(1000)
    await servers.redis.restart()
    await atLeast(told.length + 20)
    await end()
    for (const id of told) expect((await clients[0].wait(id, limit())).status.state).toBe('completed')
    expect([...refused].filter((code) => code !== -32042)).toEqual([])
    await healthy(agents)
  })

  test('requests fail with 503 while the database is unavailable for 5 s under load, and the agent recovers on its own', async () => {
    if (servers.mongodb.kind === 'MONGODB_URL') return
    await using agents = await AgentProcesses.start(2, servers)
    const clients = agents.callers('alice') as Two
    const { told, refused, atLeast, end } = load(clients, 50)
    await atLeast(20)
    await servers.mongodb.kill()
    await wait(5000)
    await servers.mongodb.restart()
    await atLeast(told.length + 10)
    await end()
    expect([...refused]).toEqual([-32042])
    // The other process may notice the recovery some seconds later.
    await healthy(agents)
    for (const id of told) {
      const task = await clients[1].wait(id, limit())
      expect(task.status).toMatchObject({ state: 'completed' })
      expect(isSound(await eventsOf(clients[0], id))).toBe(true)
    }
  })
})
