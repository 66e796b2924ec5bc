import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, RegistrationGateway } from '../registration/testing.ts'

let deployment: RegistrationGateway

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
})

afterEach(() => deployment[Symbol.asyncDispose]())

test('DELETE is allowed for the owner and the operator, and other callers receive 404', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice })
  const bearer = await deployment.registered(alice)
  await deployment.join(agent.url, bearer, alice)
  const remove = (token: string) => deployment.send('DELETE', '/registry/agents/external', token)
  expect((await remove('')).status).toBe(401)
  expect((await remove(await deployment.carol())).error).toMatchObject({ code: -32040 })
  expect((await remove(bearer)).status).toBe(200)
  expect(deployment.gateway.registry.all()).toEqual([])
  await deployment.join(agent.url, bearer, alice)
  expect((await remove(await deployment.operator())).status).toBe(200)
  expect((await remove(await deployment.operator())).status).toBe(404)
})

test('the operator can remove agents that the gateway no longer runs, but not running agents', async () => {
  await deployment.start()
  const { registry } = deployment.gateway
  const { id } = await registry.register({
    name: 'external',
    description: '',
    did: alice.did,
    url: 'http://127.0.0.1:1',
    card: { name: 'external' },
    skills: [],
    owner: alice.did,
    origin: 'supervised',
    verified: true,
    admitted: true,
  })
  const remove = async (token: string) =>
    (await deployment.send('DELETE', '/registry/agents/external', token)).status
  expect(await remove(await deployment.operator())).toBe(409)
  registry.setStatus(id, 'unreachable')
  const bearer = await deployment.registered(alice)
  expect(await remove(bearer)).toBe(409)
  expect(await remove(await deployment.operator())).toBe(200)
  // Now it may register as an external agent.
  const agent = await deployment.serveAgent({ identity: alice })
  expect((await deployment.join(agent.url, bearer, alice)).status).toBe(201)
})

test.each<[string, string, string | undefined, number, number]>([
  ['without a token', 'POST /registry/agents', '', 401, -32009],
  ['with a read-only token', 'POST /registry/agents', 'agent:read', 403, -32013],
  ['without a token', 'DELETE /registry/agents/x', '', 401, -32009],
  ['with a read-only token', 'DELETE /registry/agents/x', 'agent:read', 403, -32013],
  ['without a token', 'POST /registry/agents/x/admit', '', 401, -32009],
  ['with a write token', 'POST /registry/agents/x/admit', 'agent:write', 403, -32013],
  ['with a write token', 'POST /registry/agents/x/quarantine', 'agent:write', 403, -32013],
  ['with a write token', 'POST /registry/agents/x/release', 'agent:write', 403, -32013],
])('%s, %s is rejected', async (_what, route, scope, status, code) => {
  await deployment.start()
  const [method = '', where = ''] = route.split(' ')
  const bearer = scope === '' ? '' : await deployment.clientToken('dev-client.json', scope)
  const answer = await deployment.send(
    method,
    where,
    bearer,
    method === 'POST' ? { url: 'http://x.example' } : undefined,
  )
  expect([answer.status, answer.error.code]).toEqual([status, code])
})

test('the operator receives 404 for an unknown agent', async () => {
  await deployment.start()
  for (const route of ['admit', 'quarantine', 'release']) {
    expect(
      (await deployment.send('POST', `/registry/agents/x/${route}`, await deployment.operator())).error.code,
    ).toBe(-32040)
  }
})

test('the operator can list and remove unregistered agents, which other callers cannot see', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice })
  const bearer = await deployment.registered(alice)
  await deployment.join(agent.url, bearer, alice)
  const admin = await deployment.operator()
  await deployment.send('POST', '/registry/agents/external/admit', admin)
  await deployment.send('DELETE', '/registry/agents/external', bearer)
  const left = (token: string) => deployment.send('GET', '/registry/agents?status=left', token)
  expect([(await left('')).status, (await left(bearer)).status]).toEqual([401, 403])
  expect((await left(admin)).json).toMatchObject({
    agents: [{ slug: 'external', left: expect.any(String) }],
    total: 1,
  })
  expect((await deployment.send('DELETE', '/registry/agents/external', bearer)).status).toBe(404)
  expect((await deployment.send('POST', '/registry/agents/external/quarantine', admin)).status).toBe(200)
  expect((await deployment.send('DELETE', '/registry/agents/external', admin)).status).toBe(200)
  expect((await left(admin)).json).toMatchObject({ agents: [], total: 0 })
})
