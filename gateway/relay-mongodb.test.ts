import { cp } from 'node:fs/promises'
import path from 'node:path'
import { AgentClient } from '@parley/client/internal/client'
import { startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { hasRedis, startRedis } from '@parley/tools/testing/redis-server'
import { expect, test } from 'vitest'
import { RegistrationGateway } from './registration/testing.ts'

interface Deployment {
  one: RegistrationGateway
  other: RegistrationGateway
  env: NodeJS.ProcessEnv
}

async function open(stack: AsyncDisposableStack, more: NodeJS.ProcessEnv = {}): Promise<Deployment> {
  const mongodb = stack.use(await startMongodb())
  const one = stack.use(await RegistrationGateway.open())
  const other = stack.use(await RegistrationGateway.open())
  const env = { STORE_URL: mongodb.newUrl(), PARLEY_EMBEDDED_OAUTH: 'yes', ...more }
  const dataDir = path.join(one.folder, 'data')
  await one.start({ ...env, DATA_DIR: dataDir }, {}, { agentsDir: path.join(one.folder, 'agents') })
  const foreign = stack.use(
    await startForeignAgent((_request, reply) =>
      reply.result({ message: { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'Hi' }] } }),
    ),
  )
  foreign.card = {
    name: 'Greeter',
    description: 'Greets people',
    version: '2.0.0',
    supportedInterfaces: [{ url: `${foreign.url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    skills: [{ id: 'greet', name: 'Greet', description: 'Greets people', tags: [] }],
  }
  const post = async (route: string, token: string, body: object) => {
    const response = await fetch(`${one.gateway.addresses.public}${route}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect(response.ok).toBe(true)
  }
  await post('/registry/agents', await one.carol(), { url: foreign.url })
  await post('/registry/agents/greeter/admit', await one.operator(), {})
  return { one, other, env: { ...env, PUBLIC_URL: one.gateway.addresses.public } }
}

async function callerAt({ gateway }: RegistrationGateway, one: RegistrationGateway): Promise<AgentClient> {
  const url = `${gateway.addresses.local}/agents/greeter/`
  return new AgentClient({ url, token: await one.carol() })
}

async function answerOf(caller: AgentClient): Promise<unknown> {
  const { id } = await caller.send('hello')
  const { status } = await caller.wait(id, { signal: AbortSignal.timeout(30_000) })
  return status.message?.parts
}

test.skipIf(!hasMongodb)(
  'a gateway without a relay reaches the relay of another gateway (needs mongod)',
  async () => {
    await using stack = new AsyncDisposableStack()
    const { one, other, env } = await open(stack)
    await other.start({ ...env, DATA_DIR: path.join(one.folder, 'data') })
    for (const gateway of [one, other])
      expect(await answerOf(await callerAt(gateway, one))).toMatchObject([{ text: 'Hi' }])
  },
  120_000,
)

test.skipIf(!hasMongodb || !hasRedis)(
  'the relay keeps the data of its agents in Redis with the rights of a separate user (needs mongod and redis-server)',
  async () => {
    await using stack = new AsyncDisposableStack()
    const redis = stack.use(await startRedis())
    const { one } = await open(stack, { REDIS_URL: redis.url })
    expect(await answerOf(await callerAt(one, one))).toMatchObject([{ text: 'Hi' }])
  },
  120_000,
)

test.skipIf(!hasMongodb || !hasRedis)(
  'relays of two machines with copies of one key serve the same tasks (needs mongod and redis-server)',
  async () => {
    await using stack = new AsyncDisposableStack()
    const redis = stack.use(await startRedis())
    // On one machine, two gateways with copies of one data folder would end the processes of each other's users.
    const { one, other, env } = await open(stack, { REDIS_URL: redis.url, AGENT_ISOLATION: 'permission' })
    const first = await callerAt(one, one)
    const { id } = await first.send('hello')
    await first.wait(id, { signal: AbortSignal.timeout(30_000) })
    const dataDir = path.join(other.folder, 'data')
    await cp(path.join(one.folder, 'data'), dataDir, { recursive: true })
    await other.start({ ...env, DATA_DIR: dataDir }, {}, { agentsDir: path.join(other.folder, 'agents') })
    await expect
      .poll(() => other.gateway.supervisor?.pids().length ?? 0, { timeout: 20_000 })
      .toBeGreaterThan(0)
    const second = await callerAt(other, one)
    expect((await second.get(id)).status.state).toBe('completed')
    const later = await second.send('hello')
    await second.wait(later.id, { signal: AbortSignal.timeout(30_000) })
    expect((await first.get(later.id)).status.state).toBe('completed')
  },
  120_000,
)
