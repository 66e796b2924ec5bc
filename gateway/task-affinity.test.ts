import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import { openSharedState } from './gateway-state-mongodb.ts'
import { settledRoute } from './routing/placement/route-claims.ts'
import type { Route, RoutingStore } from './routing/store/routing-store.ts'
import { FakeAgent, fail, saying } from './testing.ts'

describe.skipIf(!hasMongodb)('one agent for concurrent messages at two gateways (needs mongod)', () => {
  let mongodb: MongodbServer
  let provider: TestIdentityProvider
  let folder: string
  let one: GatewayApp
  let other: GatewayApp
  let token: string
  let store: RoutingStore
  let sky: FakeAgent
  let board: FakeAgent
  const stack = new AsyncDisposableStack()

  beforeAll(async () => {
    mongodb = stack.use(await startMongodb())
    provider = stack.use(await TestIdentityProvider.start())
    folder = await mkdtemp(path.join(os.tmpdir(), 'parley-affinity-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const url = mongodb.newUrl()
    const settings = gatewayConfig({
      PORT: '0',
      LOG_LEVEL: 'silent',
      DATA_DIR: folder,
      PUBLIC_URL: 'http://127.0.0.1:7998',
      STORE_URL: url,
      OAUTH_ISSUER: provider.url,
      OAUTH_INTROSPECTION_URL: provider.url,
      OAUTH_CLIENT_ID: 'gateway',
      OAUTH_CLIENT_SECRET: 'secret',
      ROUTE_LEARNING: 'no',
    })
    const log = makeLog({ level: 'silent', name: 'test' })
    const start = () => startGatewayApp({ settings, log })
    one = stack.use(await start())
    other = stack.use(await start())
    const keys = { dataDir: folder, settings: settings.secrets.masterKey, log }
    store = stack.use(await openSharedState(url, keys)).routing
    token = provider.issue('alice', { scope: 'agent:read agent:write' })
  })
  afterAll(() => stack.disposeAsync())

  beforeEach(async () => {
    ;[sky, board] = [
      await entered('sky', 'Weather forecast for any city'),
      await entered('board', 'Plays chess'),
    ]
  })
  afterEach(async () => {
    for (const agent of [sky, board]) {
      await one.registry.remove(one.registry.find(agent.slug)?.id ?? '')
      await agent.stop()
    }
    await vi.waitUntil(() => other.registry.all().length === 0, { timeout: 100_000 })
  })

  async function entered(name: string, description: string): Promise<FakeAgent> {
    const agent = new FakeAgent()
    await agent.listen()
    const modes = { input_modes: ['text/plain'], output_modes: ['text/plain'] }
    const { slug } = await one.registry.register({
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
    agent.slug = slug
    await vi.waitUntil(() => other.registry.find(slug)?.url.endsWith(`:${agent.port}`), { timeout: 100_000 })
    return agent
  }

  async function send(gateway: GatewayApp, text: string, more: object = {}, key?: string) {
    const response = await fetch(gateway.addresses.local, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${token}`,
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: saying(text, more) }),
    })
    return { status: response.status, agent: response.headers.get('x-agent'), body: await response.text() }
  }

  /** Sends a message to each of the two gateways at the same time. */
  const both = (more: object, key?: string) =>
    Promise.all([send(one, 'weather forecast', more, key), send(other, 'plays chess', more, key)])
  const homes = (answers: readonly { status: number; agent: string | null }[]) => {
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    return new Set(answers.map(({ agent }) => agent)).size
  }
  const idOf = (agent: FakeAgent) => one.registry.find(agent.slug)?.id ?? ''

  test.each(['contextId', 'taskId'])('two first messages with one new %s go to one agent', async (name) => {
    for (let time = 0; time < 5; time += 1) expect(homes(await both({ [name]: randomUUID() }))).toBe(1)
  })

  test('two messages with the same new Idempotency-Key go to one agent', async () => {
    for (let time = 0; time < 5; time += 1) expect(homes(await both({}, randomUUID()))).toBe(1)
  })

  test('a message that an agent rejects moves to the same next agent at both gateways', async () => {
    sky.on['message/send'] = ({ response, id }) => fail(response, id, 503, -32042, { reason: 'draining' })
    for (let time = 0; time < 5; time += 1) {
      const negotiation = { min_score: 0 }
      const ask = (gateway: GatewayApp, text: string, contextId: string) =>
        fetch(gateway.addresses.local, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
          body: JSON.stringify({
            jsonrpc: '2.0',
            id: '1',
            method: 'message/send',
            params: saying(text, { contextId }, { negotiation }),
          }),
        })
      const contextId = randomUUID()
      const answers = await Promise.all([
        ask(one, 'weather forecast, or chess', contextId),
        ask(other, 'weather forecast, or chess', contextId),
      ])
      expect(answers.map((answer) => [answer.status, answer.headers.get('x-agent')])).toEqual([
        [200, 'board'],
        [200, 'board'],
      ])
    }
  })

  test('if a gateway crashes while sending the first message, the others go to the agent that the gateway tried', async () => {
    const contextId = randomUUID()
    const route: Route = {
      owner: 'alice',
      kind: 'context',
      id: contextId,
      agent: idOf(board),
      at: Date.now(),
    }
    await store.claim({ ...route, placing: 'a gateway that is gone' })
    const answers = await Promise.all([
      send(one, 'weather forecast', { contextId }),
      send(other, 'weather forecast', { contextId }),
    ])
    expect(answers.map(({ agent }) => agent)).toEqual(['board', 'board'])
    expect(await store.find('alice', 'context', contextId)).toMatchObject({ agent: route.agent })
    expect(sky.calls.filter(({ method }) => method === 'message/send')).toEqual([])
  })

  test('messages of a new context whose sends block reach one agent through both gateways before any answer', async () => {
    const waiting: (() => void)[] = []
    for (const agent of [sky, board])
      agent.on['SendMessage'] = async () => {
        await new Promise<void>((resolve) => waiting.push(resolve))
        return { task: { id: randomUUID(), contextId, status: { state: 'TASK_STATE_COMPLETED' } } }
      }
    const contextId = randomUUID()
    const ask = (gateway: GatewayApp, text: string) => {
      const message = { messageId: randomUUID(), contextId, role: 'ROLE_USER', parts: [{ text }] }
      return fetch(`${gateway.addresses.local}/a2a/v1`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
        body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'SendMessage', params: { message } }),
      })
    }
    const answers = [one, other, one].map((gateway, n) => ask(gateway, n === 1 ? 'chess' : 'weather'))
    await vi.waitUntil(() => waiting.length === 3, { timeout: 100_000 })
    for (const go of waiting) go()
    const agents = (await Promise.all(answers)).map(({ status, headers }) => [status, headers.get('x-agent')])
    const [first] = agents
    expect(agents).toEqual([first, first, first])
    expect(first).toEqual([200, expect.stringMatching(/sky|board/)])
  })

  test('the claim of a send that blocks is settled before one that must be answered without delay', async () => {
    const claimed = await Promise.all(
      [{}, { isBlocking: true as const }].map((more) =>
        store.claim({
          owner: 'alice',
          kind: 'context',
          id: randomUUID(),
          agent: idOf(board),
          at: Date.now(),
          placing: 'another gateway',
          ...more,
        }),
      ),
    )
    const settled: (string | undefined)[] = []
    await Promise.all(claimed.map(async (route) => settled.push((await settledRoute(store, route))?.id)))
    expect(settled).toEqual(claimed.map(({ id }) => id).reverse())
    const stored = await Promise.all(claimed.map(({ id }) => store.find('alice', 'context', id)))
    expect(stored.map((route) => [route?.agent, route?.placing, route?.isBlocking])).toEqual(
      claimed.map(({ agent }) => [agent, undefined, undefined]),
    )
  })

  test('a message that the agent rejects leaves its context unbound', async () => {
    const contextId = randomUUID()
    sky.on['message/send'] = ({ response, id }) => fail(response, id, 400, -32602, {})
    expect((await send(one, 'weather forecast', { contextId })).status).toBe(400)
    const sent = await send(other, 'plays chess', { contextId })
    expect([sent.status, sent.agent]).toEqual([200, 'board'])
  })

  test('a context that no agent accepted stays unbound', async () => {
    const contextId = randomUUID()
    for (const agent of [sky, board])
      agent.on['message/send'] = ({ response, id }) => fail(response, id, 503, -32042, { reason: 'draining' })
    expect((await send(one, 'weather forecast', { contextId })).status).toBe(503)
    expect(await store.find('alice', 'context', contextId)).toBeUndefined()
  })
})
