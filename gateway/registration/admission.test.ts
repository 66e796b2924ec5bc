import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, type Played, production, RegistrationGateway } from './testing.ts'

const bearerCard = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
let house: RegistrationGateway

beforeEach(async () => {
  house = await RegistrationGateway.open()
})

afterEach(() => house[Symbol.asyncDispose]())

test('a stranger joins in production: no work and no token before an operator admitted it', async () => {
  await house.start(production)
  const agent = await house.playAgent({ identity: alice, card: bearerCard })
  const bearer = await house.registered(alice)
  const { json } = await house.join(agent.url, bearer, alice)
  expect(json).toMatchObject({
    verified: true,
    admitted: false,
    slug: 'stranger',
    external: true,
    token_resource: alice.did,
  })
  expect((await house.send('GET', '/registry/agents', '')).json).toMatchObject({
    agents: [{ admitted: false }],
  })
  expect((await house.send('GET', '/agent/skills', '')).json).toEqual({ skills: [], total: 0 })
  const scope = 'agent:read agent:write'
  const token = await house.clientToken('oauth/operator-client.json', scope, alice.did)
  const work = () => house.send('POST', '/agents/stranger/echo', token, {})
  expect(await work()).toMatchObject({
    status: 503,
    error: { code: -32042, data: { reason: 'not_admitted' } },
  })
  const told = house.logged.filter((line) => line.includes('not_admitted'))
  expect(told).toHaveLength(1)
  expect(told[0]).toContain('"audit":true')
  expect(agent.calls.some(({ authorization }) => authorization !== undefined)).toBe(false)
  for (const route of ['admit', 'quarantine', 'release']) {
    const refused = await house.send('POST', `/registry/agents/stranger/${route}`, bearer)
    expect([refused.status, refused.error.code]).toEqual([403, -32013])
  }
  const admin = await house.operator()
  expect((await house.send('POST', '/registry/agents/stranger/admit', admin)).json).toMatchObject({
    admitted: true,
  })
  expect(await work()).toMatchObject({ status: 200, json: { echo: true } })
  expect(agent.calls.at(-1)).toEqual({ url: '/echo', authorization: `Bearer ${token}` })
  const set = await house.send('POST', '/registry/agents/stranger/quarantine', admin, { reason: 'lies' })
  expect(set.json).toMatchObject({ quarantined: true, quarantine: { reason: 'lies' } })
  expect((await work()).error.data.reason).toBe('quarantined')
  expect(house.logged.some((line) => line.includes('"Unavailable: quarantined"'))).toBe(true)
  expect((await house.send('POST', '/registry/agents/stranger/release', admin)).json).toMatchObject({
    quarantine: null,
  })
  expect((await work()).status).toBe(200)
})

test('in development too an external agent waits for an operator; REGISTRY_OPEN=yes opens the registry', async () => {
  await house.start()
  const agent = await house.playAgent({ identity: alice })
  const bearer = await house.registered(alice)
  expect((await house.join(agent.url, bearer, alice)).json).toMatchObject({ admitted: false })
  await using open = await RegistrationGateway.open()
  await open.start({ REGISTRY_OPEN: 'yes' })
  const joined = await open.join(agent.url, await open.registered(alice), alice)
  expect(joined.json).toMatchObject({ admitted: true, external: true })
})

test('an agent admitted as own gets callers’ tokens as supervised agents do; it must have proven its key', async () => {
  await house.start()
  const agent = await house.playAgent({ identity: alice, card: bearerCard })
  const bearer = await house.registered(alice)
  await house.join(agent.url, bearer, alice)
  const admin = await house.operator()
  const admit = (slug: string, body: object) =>
    house.send('POST', `/registry/agents/${slug}/admit`, admin, body)
  const carol = await house.carol()
  const work = async () => (await house.send('POST', '/agents/stranger/echo', carol, {})).status
  expect((await admit('stranger', {})).json).toMatchObject({ admitted: true, external: true })
  expect(await work()).toBe(403)
  expect((await admit('stranger', { own: true })).json).toMatchObject({ external: false })
  expect(await work()).toBe(200)
  expect(agent.calls.at(-1)).toEqual({ url: '/echo', authorization: `Bearer ${carol}` })
  // It stays so when the agent comes again, and until an operator says otherwise.
  expect((await house.join(agent.url, bearer, alice)).json).toMatchObject({ external: false })
  expect((await admit('stranger', {})).json).toMatchObject({ external: true })
  const unproven = await house.playAgent({ name: 'unproven' })
  await house.join(unproven.url, bearer)
  const refused = await admit('unproven', { own: true })
  expect([refused.status, refused.error.data.reason]).toEqual([409, 'not_verified'])
})

test('what an operator has looked at is admitted, and nothing that took its place meanwhile', async () => {
  await house.start(production)
  const played: Played = { card: { executionCost: { amount: '0.01' } } }
  const agent = await house.playAgent(played)
  const bearer = await house.registered(alice)
  const admin = await house.operator()
  const seen = async () => (await house.send('GET', '/registry/agents/stranger', '')).json['revision']
  const admit = (revision: unknown) =>
    house.send('POST', '/registry/agents/stranger/admit', admin, { revision })
  await house.join(agent.url, bearer)
  const cheap = await seen()
  played.card = { executionCost: { amount: '5' } }
  await house.join(agent.url, bearer)
  const dear = await admit(cheap)
  expect([dear.status, dear.error.code, dear.error.data.reason]).toEqual([409, -32043, 'changed'])
  expect((await house.send('GET', '/registry/agents/stranger', '')).json).toMatchObject({
    admitted: false,
    card_changes: [{ field: 'executionCost' }],
  })
  // The same card, said by another: of an agent without a key the address tells.
  const known = await seen()
  await house.send('DELETE', '/registry/agents/stranger', bearer)
  await house.join((await house.playAgent(played)).url, bearer)
  expect((await admit(known)).error.data.reason).toBe('changed')
  expect((await admit('x'.repeat(65))).status).toBe(400)
  const now = await seen()
  await house.join(house.gateway.registry.bySlug('stranger')?.url ?? '', bearer)
  expect((await admit(now)).json).toMatchObject({ admitted: true, revision: now })
})

test('an agent that was admitted may ask about tokens, and not before', async () => {
  await house.start(production)
  const agent = await house.playAgent({ identity: alice })
  const { client_id, client_secret } = await house.register(alice)
  const bearer = await house.tokenFor(`${house.gateway.addresses.public}/oauth2/token`, {
    client_id,
    client_secret,
  })
  await house.join(agent.url, bearer, alice)
  const admin = await house.operator()
  const basic = Buffer.from([client_id, client_secret].map(encodeURIComponent).join(':')).toString('base64')
  const asks = async () => {
    const response = await fetch(`${house.gateway.addresses.public}/oauth2/introspect`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ token: admin }),
    })
    return ((await response.json()) as { active: boolean }).active
  }
  expect(await asks()).toBe(false)
  await house.send('POST', '/registry/agents/stranger/admit', admin)
  expect(await asks()).toBe(true)
  await house.send('POST', '/registry/agents/stranger/quarantine', admin)
  expect(await asks()).toBe(false)
})

test('an operator who registers an agent admits it', async () => {
  await house.start(production)
  const agent = await house.playAgent({})
  const admin = await house.clientToken('oauth/operator-client.json', 'agent:admin agent:write')
  expect((await house.join(agent.url, admin)).json).toMatchObject({ admitted: true, verified: false })
})

test('an unverified agent with a look-alike name is refused at admit', async () => {
  await house.start(production)
  const admin = await house.operator()
  const admit = (slug: string) => house.send('POST', `/registry/agents/${slug}/admit`, admin)
  const original = await house.playAgent({ identity: alice, card: bearerCard })
  await house.join(original.url, await house.registered(alice), alice)
  expect((await admit('stranger')).json).not.toHaveProperty('look_alikes')
  const copy = await house.playAgent({ card: { ...bearerCard, name: 'strang\u0435r' } })
  const joined = await house.join(
    copy.url,
    await house.clientToken('oauth/operator-client.json', 'agent:write'),
  )
  expect(joined.json).toMatchObject({ verified: false, admitted: false })
  const refused = await admit(joined.json['slug'] as string)
  expect(refused).toMatchObject({
    status: 409,
    error: { code: -32043, data: { reason: 'look_alike', agent: 'stranger', because: 'name' } },
  })
})
