import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { freePort } from '@parley/tools/testing/port'
import { taskIdOfKey } from '@parley/wire/model/chosen-task-id'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import { FakeAgent, saying } from './testing.ts'

const patient = { timeout: 60_000, interval: 50 }

describe.skipIf(!hasMongodb)('a gateway that is killed (needs mongod)', () => {
  const stack = new AsyncDisposableStack()
  let env: Record<string, string>
  let one: GatewayApp
  let victim: { url: string; process: ChildProcess }
  let token: string
  let sky: FakeAgent
  let board: FakeAgent

  beforeAll(async () => {
    const mongodb = stack.use(await startMongodb())
    const provider = stack.use(await TestIdentityProvider.start())
    const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-killed-gateway-'))
    stack.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
    env = {
      PORT: '0',
      LOG_LEVEL: 'silent',
      DATA_DIR: folder,
      PUBLIC_URL: 'http://127.0.0.1:7997',
      STORE_URL: mongodb.newUrl(),
      OAUTH_ISSUER: provider.url,
      OAUTH_INTROSPECTION_URL: provider.url,
      OAUTH_CLIENT_ID: 'gateway',
      OAUTH_CLIENT_SECRET: 'secret',
    }
    victim = await spawned()
    one = stack.use(
      await startGatewayApp({
        settings: gatewayConfig(env),
        log: makeLog({ level: 'silent', name: 'test' }),
      }),
    )
    token = provider.issue('alice', { scope: 'agent:read agent:write' })
    sky = await entered('sky', 'Weather forecast for any city')
    board = await entered('board', 'Plays chess')
  })
  afterAll(async () => {
    victim?.process.kill('SIGKILL')
    await stack.disposeAsync()
  })

  async function spawned() {
    const port = String(await freePort())
    const entry = path.join(import.meta.dirname, 'gateway-process.ts')
    const { PATH } = process.env
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', entry], {
      env: { ...env, PATH, PORT: port },
      stdio: 'ignore',
    })
    const url = `http://127.0.0.1:${port}`
    const answers = () =>
      fetch(`${url}/health`)
        .then((response) => response.ok)
        .catch(() => false)
    await vi.waitUntil(answers, patient)
    return { url, process: child }
  }

  async function entered(name: string, description: string): Promise<FakeAgent> {
    const agent = new FakeAgent()
    await agent.listen()
    stack.defer(() => agent.stop())
    const modes = { input_modes: ['text/plain'], output_modes: ['text/plain'] }
    await one.registry.register({
      name,
      description,
      url: `http://127.0.0.1:${agent.port}`,
      card: { name, description },
      skills: [{ id: name, name, description, tags: [], ...modes }],
      owner: name,
      origin: 'supervised',
      verified: true,
      admitted: true,
      admittedBy: 'supervisor',
    })
    const known = () => fetch(`${victim.url}/registry/agents/${name}`).then(({ ok }) => ok)
    await vi.waitUntil(known, patient)
    return agent
  }

  const call = (url: string, method: string, params: object, key?: string) =>
    fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
    })

  test('a killed gateway loses nothing acknowledged, and a message in transit stays with the agent that may have it', async () => {
    const sent = await call(victim.url, 'message/send', saying('weather forecast'))
    const { result } = (await sent.json()) as { result: { id: string } }
    const ids = { contextId: randomUUID() }
    const key = randomUUID()
    // The agent takes the message, but does not respond before the gateway is killed.
    sky.on['message/send'] = ({ params }) => {
      sky.take(params)
      return new Promise(() => {})
    }
    const under = call(victim.url, 'message/send', saying('weather forecast', ids), key).catch(
      () => 'broken off',
    )
    const chosenKey = randomUUID()
    const chosen = { taskId: taskIdOfKey(chosenKey), contextId: randomUUID() }
    const chosenMessage = saying('weather forecast', chosen)
    const alsoUnder = call(victim.url, 'message/send', chosenMessage, chosenKey).catch(() => 'broken off')
    await vi.waitUntil(() => sky.sent().length === 3, patient)
    const gone = once(victim.process, 'exit')
    victim.process.kill('SIGKILL')
    await gone
    expect([await under, await alsoUnder]).toEqual(['broken off', 'broken off'])
    delete sky.on['message/send']

    const found = await call(one.addresses.local, 'tasks/get', { task_id: result.id })
    expect([found.status, found.headers.get('x-agent')]).toEqual([200, 'sky'])
    // `board` would match these messages better, but their context and their key bind them to `sky`.
    for (const [more, itsKey] of [
      [ids, undefined],
      [{}, key],
    ] as const) {
      const again = await call(one.addresses.local, 'message/send', saying('plays chess', more), itsKey)
      expect([again.status, again.headers.get('x-agent')]).toEqual([200, 'sky'])
    }
    expect(board.sent()).toEqual([])
    // A task whose id the client has chosen is canceled at the agent that may have it.
    const canceled = await call(one.addresses.local, 'tasks/cancel', { task_id: chosen.taskId }, chosenKey)
    expect([canceled.status, canceled.headers.get('x-agent')]).toEqual([200, 'sky'])
    const fresh = await call(one.addresses.local, 'message/send', saying('plays chess'))
    expect([fresh.status, fresh.headers.get('x-agent')]).toEqual([200, 'board'])
  })

  test('a cancellation at one gateway prevents a message at another one', async () => {
    const key = randomUUID()
    const taskId = taskIdOfKey(key)
    const victimAgain = await spawned()
    const prevented = await call(one.addresses.local, 'tasks/cancel', { task_id: taskId }, key)
    expect(await prevented.json()).toMatchObject({ error: { code: -32001, data: { reason: 'prevented' } } })
    const before = sky.sent().length
    const sent = await call(victimAgain.url, 'message/send', saying('weather forecast', { taskId }), key)
    expect(await sent.json()).toMatchObject({ error: { code: -32008, data: { reason: 'prevented' } } })
    expect(sky.sent()).toHaveLength(before)
    // Concurrently, either the message is refused, or the cancellation reaches the agent of the message.
    sky.on['tasks/cancel'] = ({ params }) => ({ id: params['task_id'], status: { state: 'canceled' } })
    for (let round = 0; round < 20; round += 1) {
      const own = randomUUID()
      const id = taskIdOfKey(own)
      const [message, cancellation] = await Promise.all([
        call(victimAgain.url, 'message/send', saying('weather forecast', { taskId: id }), own),
        call(one.addresses.local, 'tasks/cancel', { task_id: id }, own),
      ])
      const outcomes = [message.status, cancellation.status]
      expect([
        [400, 404],
        [200, 200],
      ]).toContainEqual(outcomes)
    }
    victimAgain.process.kill('SIGKILL')
  })

  test('a new gateway replaces the killed one and knows what the other gateway has decided in the meantime', async () => {
    const { id } = one.registry.find('board') as { id: string }
    await one.registry.quarantine(id, 'operator', 'meanwhile')
    victim = await spawned()
    const entry = await fetch(`${victim.url}/registry/agents/board`)
    expect(await entry.json()).toMatchObject({ quarantine: { reason: 'meanwhile' } })
    await one.registry.release(id)
  })
})
