import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, RegistrationGateway } from '../registration/testing.ts'

let deployment: RegistrationGateway

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
  await deployment.start({ REGISTRY_OPEN: 'yes' })
})

afterEach(() => deployment[Symbol.asyncDispose]())

const path = '/registry/agents/external/policy'
const onlyCarol = { rules: [{ effect: 'allow', callers: ['client:dev-client'] }], default: 'deny' }

async function joined() {
  const agent = await deployment.serveAgent({ identity: alice })
  const bearer = await deployment.registered(alice)
  expect((await deployment.join(agent.url, bearer, alice)).status).toBe(201)
  return { agent, bearer }
}

async function request(method: string, route: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${deployment.gateway.addresses.public}${route}`, {
    method,
    headers: {
      authorization: `Bearer ${await deployment.operator()}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const json = (await response.json()) as Record<string, unknown>
  return { status: response.status, etag: response.headers.get('etag') ?? '', json }
}

test('an agent has no policy at first, and PUT, GET and DELETE change, show and remove it', async () => {
  await joined()
  const none = { agent: 'external', policy: null, modified_at: null, modified_by: null }
  expect(await request('GET', path)).toMatchObject({ status: 200, json: none })
  const put = await request('PUT', path, onlyCarol)
  expect(put.json).toEqual({
    agent: 'external',
    policy: onlyCarol,
    modified_at: expect.any(String),
    modified_by: 'operator',
  })
  expect(await request('GET', path)).toEqual(put)
  expect((await request('DELETE', path)).json).toEqual(none)
  expect((await request('GET', path)).json).toEqual(none)
})

test('If-Match protects against lost updates, and the refusal changes nothing', async () => {
  await joined()
  const { etag: none } = await request('GET', path)
  const { etag: first } = await request('PUT', path, onlyCarol, { 'if-match': none })
  const stale = await request('PUT', path, { rules: [] }, { 'if-match': none })
  expect(stale).toMatchObject({ status: 412, json: { error: { code: -32043, data: { reason: 'changed' } } } })
  expect((await request('DELETE', path, undefined, { 'if-match': none })).status).toBe(412)
  expect((await request('GET', path)).json['policy']).toEqual(onlyCarol)
  expect((await request('PUT', path, { rules: [] }, { 'if-match': `${first}, "x"` })).status).toBe(200)
})

test.each([
  ['GET', path],
  ['PUT', path],
  ['DELETE', path],
  ['GET', `${path}/check?caller=client:a`],
])('%s %s requires agent:admin', async (method, route) => {
  await joined()
  const body = method === 'PUT' ? onlyCarol : undefined
  expect((await deployment.send(method, route, '', body)).status).toBe(401)
  expect((await deployment.send(method, route, await deployment.carol(), body)).status).toBe(403)
  expect((await request('GET', path)).json['policy']).toBeNull()
})

test.each<[string, unknown, string]>([
  ['no object', 'text', ''],
  ['an unknown caller form', { rules: [{ effect: 'allow', callers: ['bob'] }] }, 'rules.0.callers.0'],
  ['a misspelled field', { rules: [{ effect: 'deny', callers: ['*'], skils: ['a'] }] }, 'rules.0'],
])('PUT refuses %s and names the rule', async (_what, body, at) => {
  await joined()
  const refused = await request('PUT', path, body)
  expect(refused).toMatchObject({ status: 400, json: { error: { code: -32602 } } })
  const { data } = refused.json['error'] as { data: { issues: { path: string }[] } }
  expect(data.issues.map((issue) => issue.path)).toContain(at)
})

test('an unknown agent is not found', async () => {
  expect((await request('GET', '/registry/agents/missing/policy')).status).toBe(404)
  expect((await request('PUT', '/registry/agents/missing/policy', onlyCarol)).status).toBe(404)
})

test('changes and refused changes are in the audit log', async () => {
  await joined()
  await request('PUT', path, onlyCarol)
  await request('PUT', path, { rules: 1 })
  await request('DELETE', path)
  const lines = deployment.logged.filter((line) => line.includes('"registry.policy"'))
  expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
    { who: 'operator', allowed: true, target: 'external with 1 rules, default deny' },
    { who: 'operator', allowed: false, target: 'external' },
    { who: 'operator', allowed: true, target: 'external without a policy' },
  ])
})

test('check names the deciding rule, and a limited caller’s skills', async () => {
  await joined()
  const rules = [
    { effect: 'allow', callers: ['authenticated'] },
    { effect: 'deny', callers: ['tag:contractor'] },
  ]
  const check = async (query: string) => (await request('GET', `${path}/check?${query}`)).json
  expect(await check('caller=client:a')).toMatchObject({ allowed: true, rule: 'no policy', skills: null })
  await request('PUT', path, { rules })
  expect(await check('caller=client:a')).toMatchObject({
    allowed: true,
    rule: 'rule 1 (allow authenticated)',
  })
  expect(await check('caller=tag:contractor')).toMatchObject({
    allowed: false,
    rule: 'rule 2 (deny tag:contractor)',
  })
  expect(await check('caller=anonymous')).toMatchObject({ allowed: false, rule: 'default deny' })
  expect(await check('caller=client:a&delegate=tag:contractor')).toMatchObject({ allowed: false })
  expect(await check('caller=client:operator')).toMatchObject({ allowed: true, rule: 'operator' })
  expect((await request('GET', `${path}/check?caller=a`)).status).toBe(400)
  const denial = { effect: 'deny', callers: ['client:b'], skills: ['delete'] }
  await request('PUT', path, { rules: [...rules.slice(1), denial] })
  expect(await check('caller=client:b&skill=delete')).toMatchObject({
    rule: 'rule 2 (deny client:b for delete)',
  })
  expect(await check('caller=client:b')).toMatchObject({ allowed: false, rule: 'default deny' })
})

test('a policy survives a new registration, unregistration and removal, until it is reset', async () => {
  const { agent, bearer } = await joined()
  await request('PUT', path, onlyCarol)
  await deployment.join(agent.url, bearer, alice)
  const policy = async () => (await request('GET', path)).json['policy']
  expect(await policy()).toEqual(onlyCarol)
  for (const token of [bearer, await deployment.operator()]) {
    expect((await deployment.send('DELETE', '/registry/agents/external', token)).status).toBe(200)
    expect(deployment.gateway.registry.all()).toEqual([])
    expect(await policy()).toEqual(onlyCarol)
    expect((await deployment.join(agent.url, bearer, alice)).status).toBe(200)
    expect(await policy()).toEqual(onlyCarol)
  }
  await deployment.send('DELETE', '/registry/agents/external', await deployment.operator())
  expect((await request('DELETE', path)).status).toBe(200)
  expect((await request('GET', path)).status).toBe(404)
  expect((await deployment.join(agent.url, bearer, alice)).status).toBe(201)
  expect(await policy()).toBeNull()
})

test('a removed agent with a policy loses its admission', async () => {
  const { agent, bearer } = await joined()
  await request('POST', '/registry/agents/external/admit')
  await request('PUT', path, onlyCarol)
  await deployment.send('DELETE', '/registry/agents/external', await deployment.operator())
  const [entry] = deployment.gateway.registry.left()
  expect(entry).toMatchObject({ admitted: false, slug: 'external' })
  expect(entry?.admittedBy).toBeUndefined()
  expect((await deployment.join(agent.url, bearer, alice)).status).toBe(200)
})
