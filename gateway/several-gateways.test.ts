import { createHash } from 'node:crypto'
import { copyFile, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import { FakeAgent, saying } from './testing.ts'

const publicUrl = 'http://127.0.0.1:7999'
/** Upper bound for waiting. The tests do not check the latency of synchronization. */
const known = { timeout: 100_000, interval: 50 }

describe.skipIf(!hasMongodb || !hasRedis)('several gateways (needs mongod, redis-server)', () => {
  let mongodb: MongodbServer
  let redis: RedisServer
  let folder: string
  let env: Record<string, string>
  let one: GatewayApp
  let other: GatewayApp
  let agent: FakeAgent

  const start = (more: Record<string, string> = {}) =>
    startGatewayApp({
      settings: gatewayConfig({ ...env, ...more }),
      log: makeLog({ level: 'silent', name: 'test' }),
    })

  type Registered = Parameters<GatewayApp['registry']['register']>[0]

  /** Starts an agent that both gateways know. */
  async function join(
    name: string,
    description: string,
    more: Pick<Registered, 'skills' | 'origin' | 'admittedBy'>,
  ): Promise<FakeAgent> {
    const joined = new FakeAgent()
    await joined.listen()
    const url = `http://127.0.0.1:${joined.port}`
    const fixed = { card: { name }, owner: name, verified: true, admitted: true }
    await one.registry.register({ name, description, url, ...fixed, ...more })
    await vi.waitUntil(() => other.registry.find(name) !== undefined, known)
    return joined
  }

  beforeAll(async () => {
    mongodb = await startMongodb()
    redis = await startRedis()
    folder = await mkdtemp(path.join(os.tmpdir(), 'parley-several-'))
    env = {
      PORT: '0',
      LOG_LEVEL: 'silent',
      DATA_DIR: folder,
      PUBLIC_URL: publicUrl,
      STORE_URL: mongodb.newUrl(),
      REDIS_URL: redis.url,
      RATE_LIMIT_PER_MINUTE: '400',
    }
    // The gateways start concurrently, so each must tolerate what the other creates.
    ;[one, other] = await Promise.all([start(), start()])
    agent = await join('painter', 'Paints pictures of the sea', {
      skills: [
        {
          id: 'paint',
          name: 'Paint the sea',
          description: 'Paints pictures of the sea',
          tags: ['sea'],
          input_modes: ['text/plain'],
          output_modes: ['text/plain'],
        },
      ],
      origin: 'supervised',
      admittedBy: 'supervisor',
    })
  })
  afterAll(async () => {
    await one?.[Symbol.asyncDispose]()
    await other?.[Symbol.asyncDispose]()
    await agent?.stop()
    await redis[Symbol.asyncDispose]()
    await mongodb[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  async function ask(gateway: GatewayApp, route: string, init: RequestInit & { json?: unknown } = {}) {
    const { json, ...rest } = init
    const response = await fetch(`${gateway.addresses.local}${route}`, {
      ...rest,
      headers: {
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...(init.headers as Record<string, string>),
      },
      ...(json !== undefined && { method: 'POST', body: JSON.stringify(json) }),
    })
    const text = await response.text()
    // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
    const body = (text.startsWith('{') ? JSON.parse(text) : {}) as any
    return { status: response.status, headers: response.headers, body }
  }

  async function tokenOf(gateway: GatewayApp, file: string, scope: string): Promise<string> {
    const { client_id, client_secret } = JSON.parse(await readFile(path.join(folder, file), 'utf8'))
    const basic = Buffer.from(`${encodeURIComponent(client_id)}:${encodeURIComponent(client_secret)}`)
    const { body } = await ask(gateway, '/oauth2/token', {
      method: 'POST',
      headers: {
        authorization: `Basic ${basic.toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: `grant_type=client_credentials&scope=${encodeURIComponent(scope)}`,
    })
    return body.access_token as string
  }
  const user = (gateway: GatewayApp) => tokenOf(gateway, 'dev-client.json', 'agent:read agent:write')
  const operator = (gateway: GatewayApp) => tokenOf(gateway, 'oauth/operator-client.json', 'agent:admin')
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
  const rpc = (gateway: GatewayApp, token: string, method: string, params: object) =>
    ask(gateway, '/', { json: { jsonrpc: '2.0', id: '1', method, params }, headers: bearer(token) })

  test('a proof, a revoked client and a long-lived key are the same at both gateways', async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const jwk = await exportJWK(publicKey)
    const proofOf = (path: string, claims: object = {}) =>
      new SignJWT({ htm: 'POST', htu: publicUrl + path, jti: crypto.randomUUID(), ...claims })
        .setIssuedAt()
        .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
        .sign(privateKey)
    const initial = (await readFile(path.join(folder, 'oauth', 'initial-access-token'), 'utf8')).trim()
    const { body: client } = await ask(one, '/oauth2/register', {
      json: { client_name: 'bound', grant_types: ['client_credentials'] },
      headers: bearer(initial),
    })
    const basic = `Basic ${Buffer.from(`${client.client_id}:${client.client_secret}`).toString('base64')}`
    const request = (gateway: GatewayApp, more: Record<string, string> = {}, form = '') =>
      ask(gateway, '/oauth2/token', {
        method: 'POST',
        headers: { authorization: basic, 'content-type': 'application/x-www-form-urlencoded', ...more },
        body: `grant_type=client_credentials${form}`,
      })
    const forToken = await proofOf('/oauth2/token')
    const issued = await Promise.all([one, other].map((gateway) => request(gateway, { dpop: forToken })))
    expect(issued.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 400])
    const token = issued.find(({ status }) => status === 200)?.body.access_token as string
    const dpop = await proofOf('/', { ath: createHash('sha256').update(token).digest('base64url') })
    const json = { jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} }
    const headers = { authorization: `DPoP ${token}`, dpop }
    const sent = await Promise.all([one, other].map((gateway) => ask(gateway, '/', { json, headers })))
    expect(sent.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401])
    const forGateway = `&resource=${encodeURIComponent(publicUrl)}`
    const plain = (await request(one, {}, forGateway)).body.access_token as string
    const { body: made } = await ask(one, '/client-keys', { json: {}, headers: bearer(plain) })
    expect((await rpc(other, made.key, 'tasks/list', {})).status).toBe(200)
    const revocation = { json: { id: client.client_id }, headers: bearer(await operator(other)) }
    expect((await ask(other, '/clients/revoke', revocation)).status).toBe(200)
    for (const gateway of [one, other])
      for (const credentials of [plain, made.key])
        expect((await rpc(gateway, credentials, 'tasks/list', {})).status).toBe(401)
    expect((await request(one)).status).toBe(401)
  })

  test('an agent registered at one gateway is found by a negotiation at the other, and the first can read the decision', async () => {
    expect((await ask(other, '/registry/agents/painter')).body.status).toBe('ready')
    const request = { task_summary: 'paint pictures of the sea', weights: { skill_match: 1 } }
    const { body } = await ask(other, '/agent/negotiation', { json: request })
    expect(body).toMatchObject({ can_handle: true, agent: { slug: 'painter' } })
    expect((await ask(one, `/negotiations/${body.negotiation_id}`)).status).toBe(200)
  })

  test('a task routed at one gateway is found at the other without querying the agents, and tokens are valid at both', async () => {
    const token = await user(one)
    const sent = await rpc(other, token, 'message/send', saying('paint pictures of the sea'))
    expect([sent.status, sent.headers.get('x-agent')]).toEqual([200, 'painter'])
    const found = await rpc(one, token, 'tasks/get', { task_id: sent.body.result.id })
    expect(found.body.result.id).toBe(sent.body.result.id)
    expect(agent.sent('tasks/get')).toHaveLength(1)
    const again = saying('another', { contextId: sent.body.result.context_id })
    expect((await rpc(one, token, 'message/send', again)).headers.get('x-agent')).toBe('painter')
  })

  test('a task created at a named external agent of one gateway is found at the other at once', async () => {
    const external = await join('sculptor', 'Cuts statues of marble', {
      skills: [],
      origin: 'registered',
      admittedBy: 'operator',
    })
    onTestFinished(() => external.stop())
    const token = await user(one)
    for (let count = 0; count < 20; count += 1) {
      const sent = await ask(one, '/agents/sculptor/', {
        json: { jsonrpc: '2.0', id: '1', method: 'message/send', params: saying('a statue') },
        headers: bearer(token),
      })
      const got = await rpc(other, token, 'tasks/get', { task_id: sent.body.result.id })
      expect([got.status, got.headers.get('x-agent')]).toEqual([200, 'sculptor'])
    }
  })

  test('a token revoked at one gateway is refused at the other', async () => {
    const token = await user(one)
    expect((await rpc(other, token, 'tasks/list', {})).status).toBe(200)
    const { client_id, client_secret } = JSON.parse(
      await readFile(path.join(folder, 'dev-client.json'), 'utf8'),
    )
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64')
    const headers = { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' }
    const revoked = await ask(other, '/oauth2/revoke', { method: 'POST', headers, body: `token=${token}` })
    expect(revoked.status).toBe(200)
    expect((await rpc(one, token, 'tasks/list', {})).status).toBe(401)
  })

  test('an operator’s quarantine and release at one gateway apply at the other', async () => {
    const headers = bearer(await operator(one))
    await ask(other, '/registry/agents/painter/quarantine', { method: 'POST', headers })
    await vi.waitFor(() => expect(one.registry.find('painter')?.quarantine).toBeDefined(), known)
    const token = await user(one)
    const refused = await rpc(one, token, 'message/send', saying('paint pictures of the sea'))
    expect(refused.body.error.code).toBe(-32004)
    await ask(one, '/registry/agents/painter/release', { method: 'POST', headers })
    await vi.waitFor(() => expect(other.registry.find('painter')?.quarantine).toBeUndefined(), known)
  })

  test('changes to agents are synchronized even without Redis', async () => {
    await redis.kill()
    await one.registry.quarantine('none', 'x', 'y').catch(() => {})
    const { id } = one.registry.find('painter') as { id: string }
    await one.registry.quarantine(id, 'operator', 'Redis is down')
    await vi.waitFor(() => expect(other.registry.find('painter')?.quarantine).toBeDefined(), known)
    await one.registry.release(id)
    await vi.waitFor(() => expect(other.registry.find('painter')?.quarantine).toBeUndefined(), known)
    const health = await ask(one, '/health')
    expect([health.status, health.body.checks.bus]).toEqual([503, expect.stringMatching(/^error/)])
    // Without a rate limit store, every request is refused.
    expect((await ask(one, '/registry/agents')).body.error.data.reason).toBe('limits')
    await redis.restart()
    await vi.waitFor(async () => expect((await ask(one, '/health')).status).toBe(200), known)
  })

  test('requests to all gateways count towards one limit', async () => {
    const limited = { RATE_LIMIT_PER_MINUTE: '12' }
    await using third = await start(limited)
    await using fourth = await start(limited)
    const statuses: number[] = []
    for (let n = 0; n < 20; n += 1) {
      const header = { 'x-forwarded-for': '203.0.113.9' }
      statuses.push((await ask(n % 2 === 0 ? third : fourth, '/registry/agents', { headers: header })).status)
    }
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(0)
  })

  test('a gateway with different OAuth secrets or another address is refused with a message', async () => {
    const elsewhere = { DATA_DIR: path.join(folder, 'elsewhere') }
    await mkdir(elsewhere.DATA_DIR)
    await copyFile(path.join(folder, 'master.key'), path.join(elsewhere.DATA_DIR, 'master.key'))
    const refusal = /a different PUBLIC_URL or different files in DATA_DIR\/oauth/
    await Promise.all([
      expect(start(elsewhere)).rejects.toThrow(refusal),
      expect(start({ PUBLIC_URL: 'http://127.0.0.1:7998' })).rejects.toThrow(refusal),
    ])
  })

  test('a gateway without the master key of the database, or with another, is refused with a message', async () => {
    const keyless = path.join(folder, 'keyless')
    await expect(start({ DATA_DIR: keyless })).rejects.toThrow('there is no master key')
    await expect(stat(keyless)).rejects.toThrow('ENOENT')
    const other = { PARLEY_MASTER_KEY: Buffer.alloc(32, 1).toString('base64') }
    await expect(start({ DATA_DIR: keyless, ...other })).rejects.toThrow('is encrypted with the master key')
  })

  test('a stopped gateway does not affect the other', async () => {
    const token = await user(one)
    const sent = await rpc(one, token, 'message/send', saying('paint pictures of the sea'))
    await one[Symbol.asyncDispose]()
    expect((await rpc(other, token, 'tasks/get', { task_id: sent.body.result.id })).status).toBe(200)
    const again = await rpc(other, token, 'message/send', saying('paint pictures of the sea'))
    expect(again.headers.get('x-agent')).toBe('painter')
  })
})
