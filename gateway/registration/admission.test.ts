import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, production, RegistrationGateway, type ScriptedAgent } from './testing.ts'

const bearerCard = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
let deployment: RegistrationGateway

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
})

afterEach(() => deployment[Symbol.asyncDispose]())

test('in production, an external agent gets no work and no tokens until an operator admits it', async () => {
  await deployment.start(production)
  const agent = await deployment.serveAgent({ identity: alice, card: bearerCard })
  const bearer = await deployment.registered(alice)
  const { json } = await deployment.join(agent.url, bearer, alice)
  expect(json).toMatchObject({
    verified: true,
    admitted: false,
    slug: 'external',
    external: true,
    token_resource: alice.did,
  })
  expect((await deployment.send('GET', '/registry/agents', '')).json).toMatchObject({
    agents: [{ admitted: false }],
  })
  expect((await deployment.send('GET', '/agent/skills', '')).json).toEqual({ skills: [], total: 0 })
  const scope = 'agent:read agent:write'
  const token = await deployment.clientToken('oauth/operator-client.json', scope, alice.did)
  const work = () => deployment.send('POST', '/agents/external/echo', token, {})
  expect(await work()).toMatchObject({
    status: 503,
    error: { code: -32042, data: { reason: 'not_admitted' } },
  })
  const told = deployment.logged.filter((line) => line.includes('not_admitted'))
  expect(told).toHaveLength(1)
  expect(told[0]).toContain('"audit":true')
  expect(agent.calls.some(({ authorization }) => authorization !== undefined)).toBe(false)
  for (const route of ['admit', 'quarantine', 'release']) {
    const refusal = await deployment.send('POST', `/registry/agents/external/${route}`, bearer)
    expect([refusal.status, refusal.error.code]).toEqual([403, -32013])
  }
  const admin = await deployment.operator()
  expect((await deployment.send('POST', '/registry/agents/external/admit', admin)).json).toMatchObject({
    admitted: true,
  })
  expect(await work()).toMatchObject({ status: 200, json: { echo: true } })
  expect(agent.calls.at(-1)).toEqual({
    url: '/echo',
    authorization: expect.stringMatching(/^Bearer pxt_/),
  })
  const set = await deployment.send('POST', '/registry/agents/external/quarantine', admin, { reason: 'lies' })
  expect(set.json).toMatchObject({ quarantined: true, quarantine: { reason: 'lies' } })
  expect((await work()).error.data.reason).toBe('quarantined')
  expect(deployment.logged.some((line) => line.includes('"Unavailable: quarantined"'))).toBe(true)
  expect((await deployment.send('POST', '/registry/agents/external/release', admin)).json).toMatchObject({
    quarantine: null,
  })
  expect((await work()).status).toBe(200)
})

test('an external agent also waits for an operator in development unless REGISTRY_OPEN=yes opens the registry', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice })
  const bearer = await deployment.registered(alice)
  expect((await deployment.join(agent.url, bearer, alice)).json).toMatchObject({ admitted: false })
  await using open = await RegistrationGateway.open()
  await open.start({ REGISTRY_OPEN: 'yes' })
  const joined = await open.join(agent.url, await open.registered(alice), alice)
  expect(joined.json).toMatchObject({ admitted: true, external: true })
})

test('an agent admitted as the deployment’s own must prove its key and is then treated as the deployment’s own', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice, card: bearerCard })
  const bearer = await deployment.registered(alice)
  await deployment.join(agent.url, bearer, alice)
  const admin = await deployment.operator()
  const admit = (slug: string, body: object) =>
    deployment.send('POST', `/registry/agents/${slug}/admit`, admin, body)
  const carol = await deployment.carol()
  const work = async () => (await deployment.send('POST', '/agents/external/echo', carol, {})).status
  expect((await admit('external', {})).json).toMatchObject({ admitted: true, external: true })
  expect(await work()).toBe(200)
  expect((await admit('external', { own: true })).json).toMatchObject({ external: false })
  expect(await work()).toBe(200)
  expect(agent.calls.map(({ authorization = 'Bearer ' }) => authorization)).not.toContain(`Bearer ${carol}`)
  // The declaration is kept across registrations until an operator changes it.
  expect((await deployment.join(agent.url, bearer, alice)).json).toMatchObject({ external: false })
  expect((await admit('external', {})).json).toMatchObject({ external: true })
  const unproven = await deployment.serveAgent({ name: 'unproven' })
  await deployment.join(unproven.url, bearer)
  const refusal = await admit('unproven', { own: true })
  expect([refusal.status, refusal.error.data.reason]).toEqual([409, 'not_verified'])
})

test('admission applies only to the reviewed revision and not to a replacement', async () => {
  await deployment.start(production)
  const script: ScriptedAgent = { card: { executionCost: { amount: '0.01' } } }
  const agent = await deployment.serveAgent(script)
  const bearer = await deployment.registered(alice)
  const admin = await deployment.operator()
  const seen = async () => (await deployment.send('GET', '/registry/agents/external', '')).json['revision']
  const admit = (revision: unknown) =>
    deployment.send('POST', '/registry/agents/external/admit', admin, { revision })
  await deployment.join(agent.url, bearer)
  const cheap = await seen()
  script.card = { executionCost: { amount: '5' } }
  await deployment.join(agent.url, bearer)
  const dear = await admit(cheap)
  expect([dear.status, dear.error.code, dear.error.data.reason]).toEqual([409, -32043, 'changed'])
  expect((await deployment.send('GET', '/registry/agents/external', '')).json).toMatchObject({
    admitted: false,
    card_changes: [{ field: 'executionCost' }],
  })
  // Another agent serves the same card. Agents without a key are distinguished by their addresses.
  const known = await seen()
  await deployment.send('DELETE', '/registry/agents/external', bearer)
  await deployment.join((await deployment.serveAgent(script)).url, bearer)
  expect((await admit(known)).error.data.reason).toBe('changed')
  expect((await admit('x'.repeat(65))).status).toBe(400)
  const now = await seen()
  await deployment.join(deployment.gateway.registry.bySlug('external')?.url ?? '', bearer)
  expect((await admit(now)).json).toMatchObject({ admitted: true, revision: now })
})

test('an agent can introspect tokens once it is admitted', async () => {
  await deployment.start(production)
  const agent = await deployment.serveAgent({ identity: alice })
  const { client_id, client_secret } = await deployment.register(alice)
  const bearer = await deployment.tokenFor(`${deployment.gateway.addresses.public}/oauth2/token`, {
    client_id,
    client_secret,
  })
  await deployment.join(agent.url, bearer, alice)
  const admin = await deployment.operator()
  const basic = Buffer.from([client_id, client_secret].map(encodeURIComponent).join(':')).toString('base64')
  const asks = async () => {
    const response = await fetch(`${deployment.gateway.addresses.public}/oauth2/introspect`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ token: admin }),
    })
    return ((await response.json()) as { active: boolean }).active
  }
  expect(await asks()).toBe(false)
  await deployment.send('POST', '/registry/agents/external/admit', admin)
  expect(await asks()).toBe(true)
  await deployment.send('POST', '/registry/agents/external/quarantine', admin)
  expect(await asks()).toBe(false)
})

test('an agent registered by an operator is admitted immediately', async () => {
  await deployment.start(production)
  const agent = await deployment.serveAgent({})
  const admin = await deployment.clientToken('oauth/operator-client.json', 'agent:admin agent:write')
  expect((await deployment.join(agent.url, admin)).json).toMatchObject({ admitted: true, verified: false })
})

test('an unverified agent with a look-alike name cannot be admitted', async () => {
  await deployment.start(production)
  const admin = await deployment.operator()
  const admit = (slug: string) => deployment.send('POST', `/registry/agents/${slug}/admit`, admin)
  const original = await deployment.serveAgent({ identity: alice, card: bearerCard })
  await deployment.join(original.url, await deployment.registered(alice), alice)
  expect((await admit('external')).json).not.toHaveProperty('look_alikes')
  const copy = await deployment.serveAgent({ card: { ...bearerCard, name: 'ext\u0435rnal' } })
  const joined = await deployment.join(
    copy.url,
    await deployment.clientToken('oauth/operator-client.json', 'agent:write'),
  )
  expect(joined.json).toMatchObject({ verified: false, admitted: false })
  const refusal = await admit(joined.json['slug'] as string)
  expect(refusal).toMatchObject({
    status: 409,
    error: { code: -32043, data: { reason: 'look_alike', agent: 'external', because: 'name' } },
  })
})
