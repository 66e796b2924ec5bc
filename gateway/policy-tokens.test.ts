import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { HttpIntrospector } from '@parley/kit/auth/introspection'
import { LeasedIntrospector } from '@parley/kit/auth/leased-introspection'
import type { AgentPolicy } from '@parley/wire/model/policy'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { basic } from './oauth/testing.ts'
import { alice, bob, RegistrationGateway } from './registration/testing.ts'

let deployment: RegistrationGateway
const open = new Set<AsyncDisposable>()

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
  await deployment.start()
})

afterEach(async () => {
  for (const one of open) await one[Symbol.asyncDispose]()
  open.clear()
  await deployment[Symbol.asyncDispose]()
})

const origin = () => deployment.gateway.addresses.public
const policyOf = (...callers: string[]): AgentPolicy => ({
  rules: [{ effect: 'allow', callers }],
  default: 'deny',
})

/** Registers and admits an agent. Returns the credentials of its client. */
async function joined(identity: typeof alice, name: string) {
  const client = await deployment.register(identity)
  const agent = await deployment.serveAgent({ identity, name })
  const bearer = await deployment.tokenFor(`${origin()}/oauth2/token`, client)
  await deployment.join(agent.url, bearer, identity)
  const admit = `/registry/agents/${name}/admit`
  expect((await deployment.send('POST', admit, await deployment.operator())).status).toBe(200)
  return { url: agent.url, clientId: client.client_id, clientSecret: client.client_secret }
}

async function setPolicy(name: string, policy: AgentPolicy) {
  const answer = await deployment.send(
    'PUT',
    `/registry/agents/${name}/policy`,
    await deployment.operator(),
    policy,
  )
  expect(answer.status).toBe(200)
}

async function post(
  path: string,
  form: Record<string, string>,
  as?: { clientId: string; clientSecret: string },
) {
  const response = await fetch(`${origin()}${path}`, {
    method: 'POST',
    headers: as === undefined ? {} : { authorization: basic(as) },
    body: new URLSearchParams(form),
  })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}

/** Registers a client of no agent. */
async function carolClient() {
  const initial = await readFile(
    path.join(deployment.folder, 'data', 'oauth', 'initial-access-token'),
    'utf8',
  )
  const response = await fetch(`${origin()}/oauth2/register`, {
    method: 'POST',
    headers: { authorization: `Bearer ${initial.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Carol', grant_types: ['client_credentials'] }),
  })
  const { client_id, client_secret } = (await response.json()) as Record<string, string>
  return { clientId: client_id ?? '', clientSecret: client_secret ?? '' }
}

const tag = async (id: string, tags: string[]) =>
  deployment.send('POST', '/clients/tag', await deployment.operator(), { id, tags })

const resourceOf = (as: { clientId: string; clientSecret: string }, resource: string) =>
  post('/oauth2/token', { grant_type: 'client_credentials', resource }, as)

test('a client gets no token for an agent that it may not call, and the refusal names no agent', async () => {
  const carol = await carolClient()
  const missing = await resourceOf(carol, `${origin()}/agents/secret`)
  expect(missing).toMatchObject({ status: 400, json: { error: 'invalid_target' } })
  const { url } = await joined(alice, 'secret')
  const names = [`${origin()}/agents/secret`, `${origin()}/agents/secret/`, alice.did, url]
  for (const name of names) expect((await resourceOf(carol, name)).status).toBe(200)
  await setPolicy('secret', policyOf('client:dev-client'))
  for (const name of names) expect(await resourceOf(carol, name)).toEqual(missing)
  await setPolicy('secret', policyOf(`client:${carol.clientId}`))
  for (const name of names) expect((await resourceOf(carol, name)).status).toBe(200)
})

test('a token is inactive at an agent that its client may not call, and active elsewhere', async () => {
  const carol = await carolClient()
  const secret = await joined(alice, 'secret')
  const { json } = await post('/oauth2/token', { grant_type: 'client_credentials' }, carol)
  const token = String(json['access_token'])
  const answer = () => post('/oauth2/introspect', { token }, secret)
  expect((await answer()).json).toMatchObject({ active: true, client_id: carol.clientId })
  await setPolicy('secret', policyOf('client:dev-client'))
  expect(await answer()).toEqual({ status: 200, json: { active: false } })
  // Elsewhere, the token is active.
  const elsewhere = await fetch(`${origin()}/registry/agents`, {
    headers: { authorization: `Bearer ${token}` },
  })
  expect(elsewhere.status).toBe(200)
  expect(await elsewhere.text()).not.toContain('secret')
  const refusals = deployment.logged.filter((line) => line.includes('oauth.introspect'))
  expect(JSON.parse(refusals[0] ?? '{}')).toMatchObject({
    who: carol.clientId,
    target: 'secret',
    allowed: false,
    reason: 'policy: default deny',
  })
})

test('an introspection response that an agent has cached ends with the change of the policy', async () => {
  const carol = await carolClient()
  const secret = await joined(alice, 'secret')
  const { json } = await post('/oauth2/token', { grant_type: 'client_credentials' }, carol)
  const token = String(json['access_token'])
  const http = new HttpIntrospector({ ...secret, url: `${origin()}/oauth2/introspect` })
  const introspector = new LeasedIntrospector({ http })
  open.add(introspector)
  const isActive = async () => (await introspector.introspect(token)).active
  const isCached = async () => {
    const first = await introspector.introspect(token)
    return first === (await introspector.introspect(token))
  }
  while (!(await isCached())) await wait(10)
  for (const [callers, active] of [
    ['client:dev-client', false],
    [`client:${carol.clientId}`, true],
    ['authenticated', true],
    ['tag:team', false],
  ] as const) {
    await setPolicy('secret', policyOf(callers))
    expect({ callers, active: await isActive() }).toEqual({ callers, active })
  }
  // A tag that an operator gives to the client applies immediately, too.
  expect((await tag(carol.clientId, ['team'])).status).toBe(200)
  expect(await isActive()).toBe(true)
  expect((await deployment.send('GET', '/registry/agents/secret', token)).status).toBe(200)
  await tag(carol.clientId, [])
  expect(await isActive()).toBe(false)
  expect((await deployment.send('GET', '/registry/agents/secret', token)).status).toBe(404)
})

test('an agent exchanges a token for another agent only if it and its client may call that agent', async () => {
  const carol = await carolClient()
  const acting = await joined(bob, 'acting')
  await joined(alice, 'secret')
  const { json } = await resourceOf(carol, acting.clientId)
  const exchange = (resource: string) =>
    post(
      '/oauth2/token',
      {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: String(json['access_token']),
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        resource,
      },
      acting,
    )
  const missing = await exchange(`${origin()}/agents/missing`)
  expect(missing).toMatchObject({ status: 400, json: { error: 'invalid_target' } })
  expect((await exchange(alice.did)).status).toBe(200)
  await setPolicy('secret', policyOf('client:dev-client'))
  expect(await exchange(alice.did)).toEqual(missing)
  for (const [callers, status] of [
    [[`client:${carol.clientId}`], 400],
    [[bob.did], 400],
    [[`client:${carol.clientId}`, bob.did], 200],
  ] as const) {
    await setPolicy('secret', policyOf(...callers))
    const answer = await exchange(alice.did)
    expect({ callers, status: answer.status }).toEqual({ callers, status })
  }
})

test('the operator’s client gets a token for every agent', async () => {
  await joined(alice, 'secret')
  await setPolicy('secret', policyOf('client:carol'))
  const token = await deployment.clientToken('oauth/operator-client.json', 'agent:read', alice.did)
  expect(token).toEqual(expect.any(String))
})
