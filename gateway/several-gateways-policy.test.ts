import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { HttpIntrospector } from '@parley/kit/auth/introspection'
import { LeasedIntrospector } from '@parley/kit/auth/leased-introspection'
import type { Identity } from '@parley/kit/did/identity'
import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import type { AgentPolicy } from '@parley/wire/model/policy'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { basic } from './oauth/testing.ts'
import { alice, bob, RegistrationGateway } from './registration/testing.ts'
import { FakeAgent, saying } from './testing.ts'

/** The time within which other gateways apply a policy (docs/spec/policy.md#enforcement). */
const boundMs = 2000
const known = { timeout: 100_000, interval: 50 }
const closed: AgentPolicy = { rules: [{ effect: 'allow', callers: ['client:nobody'] }], default: 'deny' }
const opened: AgentPolicy = { rules: [{ effect: 'allow', callers: ['authenticated'] }], default: 'deny' }
/** Returns an agent's only skill. */
const skillOf = (id: string, description: string) => ({
  id,
  name: id,
  description,
  tags: [],
  input_modes: ['text/plain'],
  output_modes: ['text/plain'],
})

/** Two gateways on one database without Redis, so that only synchronization carries a change. */
describe.skipIf(!hasMongodb)('policies with two gateways on one database (needs mongod)', () => {
  const stack = new AsyncDisposableStack()
  let one: RegistrationGateway
  let other: RegistrationGateway
  let secret: { clientId: string; clientSecret: string }
  let acting: { clientId: string; clientSecret: string }
  let token: string
  let tokenForActing: string
  let operator: string

  beforeAll(async () => {
    const mongodb = stack.use(await startMongodb())
    one = stack.use(await RegistrationGateway.open())
    other = stack.use(await RegistrationGateway.open())
    const env = {
      STORE_URL: mongodb.newUrl(),
      RATE_LIMIT_PER_MINUTE: '0',
      DATA_DIR: path.join(one.folder, 'data'),
      PARLEY_EMBEDDED_OAUTH: 'yes',
    }
    await one.start(env)
    await other.start({ ...env, PUBLIC_URL: one.gateway.addresses.public })
    secret = await joined(alice, 'secret', skillOf('audit', 'Audits secret ledgers'))
    acting = await joined(bob, 'acting', skillOf('paint', 'Paints pictures of the sea'))
    await vi.waitUntil(() => ['secret', 'acting'].every((slug) => other.gateway.registry.find(slug)), known)
    token = await one.carol()
    tokenForActing = await one.clientToken('dev-client.json', 'agent:read agent:write', bob.did)
    operator = await one.operator()
  }, 200_000)
  afterAll(() => stack.disposeAsync())

  /** Registers and admits an agent at the first gateway. Returns the credentials of its client. */
  async function joined(identity: Identity, name: string, skill: ReturnType<typeof skillOf>) {
    const { client_id: clientId, client_secret: clientSecret } = await one.register(identity)
    const fake = new FakeAgent()
    await fake.listen()
    stack.defer(() => fake.stop())
    fake.on['message/stream'] = ({ response, params }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: '1', result: fake.take(params) })}\n\n`)
    }
    await one.gateway.registry.register({
      name,
      description: skill.description,
      url: `http://127.0.0.1:${fake.port}`,
      card: { name, securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
      skills: [skill],
      did: identity.did,
      document: { id: identity.did },
      keys: ['key-1'],
      owner: clientId,
      origin: 'registered',
      verified: true,
      admitted: true,
      admittedBy: 'operator',
    })
    return { clientId, clientSecret }
  }

  async function setPolicy(at: RegistrationGateway, policy: AgentPolicy): Promise<void> {
    const answer = await send(at, '/registry/agents/secret/policy', {
      method: 'PUT',
      json: policy,
      bearer: operator,
    })
    expect(answer.status).toBe(200)
  }

  interface Sent {
    method?: string
    json?: object
    form?: Record<string, string>
    bearer?: string
    as?: { clientId: string; clientSecret: string }
  }

  async function send(at: RegistrationGateway, route: string, { method, json, form, bearer, as }: Sent = {}) {
    const body = json === undefined ? form && new URLSearchParams(form) : JSON.stringify(json)
    const response = await fetch(`${at.gateway.addresses.local}${route}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        ...(as !== undefined && { authorization: basic(as) }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
    })
    return { status: response.status, agent: response.headers.get('x-agent'), text: await response.text() }
  }

  const rpc = (method: string, params: object) => ({
    json: { jsonrpc: '2.0', id: '1', method, params },
    bearer: token,
  })
  const message = () => saying('Audit the secret ledgers')
  const isIn = async (answer: ReturnType<typeof send>) => (await answer).text.includes('"secret"')
  const isOk = async (answer: ReturnType<typeof send>) => (await answer).status === 200
  const exchange = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const accessToken = 'urn:ietf:params:oauth:token-type:access_token'

  /** Whether the caller reaches the agent, by place. */
  const places: Record<string, (at: RegistrationGateway) => Promise<boolean>> = {
    list: (at) => isIn(send(at, '/registry/agents', { bearer: token })),
    entry: (at) => isOk(send(at, '/registry/agents/secret', { bearer: token })),
    'search by skill': (at) => isIn(send(at, '/registry/agents?skill=audit', { bearer: token })),
    'DID resolution': (at) =>
      isOk(send(at, `/did/resolve?did=${encodeURIComponent(alice.did)}`, { bearer: token })),
    negotiation: (at) =>
      isIn(
        send(at, '/agent/negotiation', { json: { task_summary: 'Audit the secret ledgers' }, bearer: token }),
      ),
    'message by name': (at) => isOk(send(at, '/agents/secret/', rpc('message/send', message()))),
    'message without a name': async (at) =>
      (await send(at, '/', rpc('message/send', message()))).agent === 'secret',
    'token for the agent': async (at) => {
      const client = { grant_type: 'client_credentials', resource: alice.did }
      return isOk(send(at, '/oauth2/token', { form: client, as: acting }))
    },
    exchange: (at) => {
      const form = { grant_type: exchange, subject_token: tokenForActing, subject_token_type: accessToken }
      return isOk(send(at, '/oauth2/token', { form: { ...form, resource: alice.did }, as: acting }))
    },
    introspection: async (at) =>
      (await send(at, '/oauth2/introspect', { form: { token }, as: secret })).text.includes('"active":true'),
  }

  /** Returns the places at which a request that was sent after the bound gave another answer than the expected one. */
  async function lateAt(
    at: RegistrationGateway,
    reached: boolean,
    also: typeof places = {},
  ): Promise<string[]> {
    const from = performance.now()
    const isLate = async (isReached: (typeof places)[string]) => {
      for (;;) {
        const sentAfter = performance.now() - from
        if ((await isReached(at)) === reached) return false
        if (sentAfter > boundMs) return true
        await wait(20)
      }
    }
    const all = Object.entries({ ...places, ...also })
    const late = await Promise.all(
      all.map(async ([place, isReached]) => ((await isLate(isReached)) ? [place] : [])),
    )
    return late.flat()
  }

  /** An agent's cache of introspection responses, which are read at this gateway. */
  async function cacheAt(at: RegistrationGateway) {
    const url = `${at.gateway.addresses.local}/oauth2/introspect`
    const introspector = new LeasedIntrospector({ http: new HttpIntrospector({ ...secret, url }) })
    const look = async () => introspector.introspect(token)
    const warm = () => vi.waitUntil(async () => (await look()) === (await look()), known)
    return {
      warm,
      isActive: async () => (await look()).active,
      [Symbol.asyncDispose]: () => introspector[Symbol.asyncDispose](),
    }
  }

  /** Opens an event stream of the agent. `end` resolves with the time at which it was cut. */
  async function openStream(at: RegistrationGateway): Promise<{ end: Promise<number> }> {
    const response = await fetch(`${at.gateway.addresses.local}/agents/secret/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(rpc('message/stream', message()).json),
    })
    expect(response.status).toBe(200)
    const reader = response.body?.getReader()
    await reader?.read()
    const ended = async () => performance.now()
    return { end: reader?.read().then(ended, ended) ?? ended() }
  }

  test.each([
    ['first', () => one, () => other],
    ['second', () => other, () => one],
  ])(
    'a policy that is changed at the %s gateway applies at the other one within 2 seconds, at each place',
    async (_which, changedAt, appliedAt) => {
      const [here, there] = [changedAt(), appliedAt()]
      await setPolicy(here, opened)
      expect(await lateAt(there, true)).toEqual([])
      await using cache = await cacheAt(there)
      await cache.warm()
      const cached = { 'cached introspection': () => cache.isActive() }
      const stream = await openStream(there)
      await setPolicy(here, closed)
      const from = performance.now()
      // At this gateway, the change applies when the request returns.
      for (const [place, isReached] of Object.entries(places))
        expect({ place, reached: await isReached(here) }).toEqual({ place, reached: false })
      expect(await lateAt(there, false, cached)).toEqual([])
      expect((await stream.end) - from).toBeLessThan(boundMs)
      await setPolicy(here, opened)
      expect(await lateAt(there, true, cached)).toEqual([])
    },
    60_000,
  )
})
