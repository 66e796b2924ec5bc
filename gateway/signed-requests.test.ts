import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { Membership } from '@parley/agent/internal/server/registration/membership'
import { type TestAgent, testAgent } from '@parley/agent/testing'
import { makeDid } from '@parley/kit/did/did'
import type { Identity } from '@parley/kit/did/identity'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { rpc } from '@parley/tools/testing/raw-http'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alice, RegistrationGateway } from './registration/testing.ts'
import { gateway, gatewayForEachTest, identityProvider, restart } from './testing.ts'

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const did = makeDid({ author: 'alice', name: 'caller', publicKey: key.publicKey })
const env: Record<string, string> = {}

const log = makeLog({ level: 'silent', name: 'test' })

/** Starts an agent of the deployment that requires signatures and, unless the test says otherwise, registers it. */
async function member(more: object = {}): Promise<TestAgent> {
  const gatewayUrl = gateway().addresses.local
  const claims = (identity: Identity) =>
    new Membership({
      gatewayUrl,
      signer: identity,
      tokens: { get: async () => identityProvider().issue(identity.did), forget: () => {} },
      clientIsDid: true,
      registers: false,
      log,
    })
  const agent = await testAgent(
    { signatures: 'required', handle: () => 'done' },
    { identityProvider: identityProvider(), signatureClaims: claims },
  )
  const name = `agent-${agent.did.slice(-8)}`
  await gateway().registry.register({
    name,
    description: name,
    did: agent.did,
    url: agent.url,
    card: { name },
    skills: [],
    owner: agent.did,
    origin: 'registered',
    verified: true,
    admitted: true,
    admittedBy: 'operator',
    ...more,
  })
  return agent
}

/** Creates a signed message that can be sent repeatedly and to any agent. */
function signedMessage(audience?: string) {
  identityProvider().clients.set(did, { client_id: did, public_key: key.publicKeyBase58 })
  const message = { role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: 'x' }] }
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: { message } })
  const headers = { ...signRequest({ did, key, body, ...(audience !== undefined && { audience }) }) }
  return async (to: TestAgent) => {
    const token = identityProvider().issue(did)
    const { status, json } = await rpc(to, 'message/send', {}, { token, body, headers })
    return [status, json?.error?.code, json?.error?.data?.reason]
  }
}

const taken = [200, undefined, undefined]
const replayed = [403, -32012, 'replayed']
const cannotRun = [503, -32042, 'signature_claim']

function cases() {
  gatewayForEachTest(env)

  test('a signed request that one agent has accepted is refused by every agent, including the first', async () => {
    await using one = await member()
    await using other = await member()
    const send = signedMessage()
    expect(await send(one)).toEqual(taken)
    expect(await send(other)).toEqual(replayed)
    expect(await send(one)).toEqual(replayed)
    expect(await signedMessage()(other)).toEqual(taken)
  })

  test('only one of two agents that receive a signed request concurrently accepts it', async () => {
    await using one = await member()
    await using other = await member()
    const send = signedMessage()
    const answers = await Promise.all([one, other, one, other].map(send))
    expect(answers.filter(([status]) => status === 200)).toHaveLength(1)
    expect(answers.filter(([status]) => status === 403)).toHaveLength(3)
  })

  test('a claim survives a restart of the gateway', async () => {
    await using one = await member()
    const send = signedMessage()
    expect(await send(one)).toEqual(taken)
    await restart(env)
    await using other = await member()
    expect(await send(other)).toEqual(replayed)
  })
}

describe('on SQLite', () => {
  cases()
})

describe.skipIf(!hasMongodb || !hasRedis)('on MongoDB (needs mongod, redis-server)', () => {
  let mongodb: MongodbServer
  let redis: RedisServer
  beforeAll(async () => {
    mongodb = await startMongodb()
    redis = await startRedis()
    Object.assign(env, { STORE_URL: mongodb.newUrl(), REDIS_URL: redis.url })
  })
  afterAll(async () => {
    for (const name of Object.keys(env)) delete env[name]
    await redis[Symbol.asyncDispose]()
    await mongodb[Symbol.asyncDispose]()
  })
  cases()
})

describe('an agent behind a gateway', () => {
  gatewayForEachTest()

  test('the agent refuses requests while the gateway is unreachable, except those addressed only to itself', async () => {
    await using agent = await member()
    const send = signedMessage()
    await gateway()[Symbol.asyncDispose]()
    expect(await send(agent)).toEqual(cannotRun)
    for (const audience of [agent.did, agent.url, `${agent.url}/`]) {
      const bound = signedMessage(audience)
      expect(await bound(agent)).toEqual(taken)
      expect(await bound(agent)).toEqual(replayed)
    }
    expect(await send(agent)).toEqual(cannotRun)
  })

  test.each([
    ['is not admitted', { admitted: false }],
    ['is owned by another client', { owner: 'mallory' }],
  ])('an agent that %s refuses requests', async (_, more) => {
    await using agent = await member(more)
    expect(await signedMessage()(agent)).toEqual(cannotRun)
    expect(await signedMessage(agent.did)(agent)).toEqual(taken)
  })
})

describe('PUT /registry/agents/{id}/signatures/{hash}', () => {
  gatewayForEachTest()
  const hash = Buffer.alloc(32, 1).toString('base64url')

  async function put(id: string, token: string, name = hash) {
    const url = `${gateway().addresses.local}/registry/agents/${encodeURIComponent(id)}/signatures/${name}`
    const answer = await fetch(url, { method: 'PUT', headers: { authorization: `Bearer ${token}` } })
    return answer.status
  }

  test('only the owner of a registered agent may claim a valid hash, and then no other agent may claim it', async () => {
    await using one = await member()
    await using other = await member()
    const token = identityProvider().issue(one.did)
    expect(await put(one.did, '')).toBe(401)
    expect(await put(other.did, token)).toBe(404)
    expect(await put(one.did, identityProvider().issue(one.did, { scope: 'agent:read' }))).toBe(403)
    for (const name of ['x', `${hash}A`, hash.replace(/.$/, 'B')])
      expect(await put(one.did, token, name)).toBe(400)
    expect(await put(one.did, token)).toBe(200)
    expect(await put(one.did, token)).toBe(200)
    expect(await put(other.did, identityProvider().issue(other.did))).toBe(409)
  })
})

describe('claims with a rate limit', () => {
  gatewayForEachTest({ RATE_LIMIT_PER_MINUTE: '10' })

  test('are not counted as requests of the agent', async () => {
    await using one = await member()
    const token = identityProvider().issue(one.did)
    const url = `${gateway().addresses.local}/registry/agents/${encodeURIComponent(one.did)}/signatures`
    for (let value = 0; value < 30; value++) {
      const hash = Buffer.alloc(32, value).toString('base64url')
      const headers = { authorization: `Bearer ${token}` }
      expect((await fetch(`${url}/${hash}`, { method: 'PUT', headers })).status).toBe(200)
    }
  })
})

test('supervised agents together accept a signed request only once, and only from the addressed server', async () => {
  await using house = await RegistrationGateway.open()
  const agentsDir = path.join(house.folder, 'agents')
  const api = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
  for (const name of ['one', 'two']) {
    await mkdir(path.join(agentsDir, name), { recursive: true })
    await writeFile(
      path.join(agentsDir, name, 'agent.js'),
      `import { defineAgent } from ${JSON.stringify(api)}
       export default defineAgent({ name: '${name}', description: 'Repeats', handle: ({ text }) => text,
         signatures: 'required', skills: [{ id: '${name}', name: '${name}', description: 'Repeats' }] })`,
    )
  }
  await house.start({ PATH: process.env['PATH'], HOME: house.folder, LOG_LEVEL: 'silent' }, {}, { agentsDir })
  await house.gateway.supervisor?.settled()
  const token = await house.registered(alice)
  const { public: origin } = house.gateway.addresses
  for (const audience of [undefined, origin]) {
    const message = { role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: 'x' }] }
    const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: { message } })
    const signed = signRequest({ ...alice, body, ...(audience !== undefined && { audience }) })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...signed }
    const send = async (slug: string) => {
      const answer = await fetch(`${origin}/agents/${slug}/`, { method: 'POST', headers, body })
      const { error } = (await answer.json()) as { error?: { code: number; data: { reason: string } } }
      return [answer.status, error?.code, error?.data.reason]
    }
    expect(await send('one')).toEqual(taken)
    expect(await send('two')).toEqual(replayed)
  }
  const [one, two] = ['one', 'two'].map((name) => house.gateway.registry.find(name))
  const notAddressed = [403, -32012, 'audience_mismatch']
  const message = () => {
    const sent = { role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text: 'Repeats' }] }
    return JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: { message: sent } })
  }
  const send = async (url: string, audience: string, body = message()) => {
    const signed = signRequest({ ...alice, body, audience })
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...signed }
    const answer = await fetch(url, { method: 'POST', headers, body })
    const { error } = (await answer.json()) as { error?: { code: number; data: { reason: string } } }
    return [answer.status, error?.code, error?.data.reason]
  }
  for (const audience of [one?.did ?? '', `${origin}/agents/one`, one?.url ?? '']) {
    expect(await send(`${origin}/agents/one/`, audience)).toEqual(taken)
    expect(await send(`${origin}/agents/two/`, audience)).toEqual(notAddressed)
    expect(await send(`${origin}/`, audience)).toEqual(notAddressed)
  }
  expect(await send(`${origin}/`, origin)).toEqual(taken)
  // A request for the gateway is not accepted by an agent that receives it from another party.
  expect(await send(`${two?.url}/`, origin)).toEqual(notAddressed)
}, 60_000)
