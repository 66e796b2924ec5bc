import { decodeJwt } from 'jose'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  agent,
  bearer,
  call,
  type FakeAgent,
  gateway,
  gatewayForEachTest,
  identityProvider,
  post,
  restart,
  saying,
} from './testing.ts'

// The OAuth server is an external one, so agents receive statements.
gatewayForEachTest()

const bearerCard = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })
const tokenIn = (headers: { authorization?: string | undefined } | undefined) =>
  headers?.authorization?.replace('Bearer ', '') ?? ''

/** Sends a message to the agent, and returns what the agent received as a token. */
async function statementFor(to: FakeAgent, authorization: string): Promise<string> {
  const sent = await post(`/agents/${to.slug}/`, rpc('message/send', saying('go')), { authorization })
  expect(sent.status).toBe(200)
  return tokenIn(to.sent().at(-1)?.headers)
}

const answer = z.looseObject({
  access_token: z.string().optional(),
  error: z.unknown().optional(),
})

async function exchange(statement: string, client: string | undefined, more: Record<string, string> = {}) {
  const form = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: statement,
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    resource: gateway().addresses.public,
    ...more,
  })
  const response = await fetch(`${gateway().addresses.public}/oauth2/token`, {
    method: 'POST',
    headers:
      client === undefined ? {} : { authorization: client.startsWith('Bearer') ? client : bearer(client) },
    body: form,
  })
  return { status: response.status, headers: response.headers, json: answer.parse(await response.json()) }
}

test('an agent calls the next one with the token for which it exchanged its statement', async () => {
  const [one, two] = [await agent('one', 'Plays chess'), await agent('two', 'Weather forecast')]
  const { status, headers, json } = await exchange(await statementFor(one, bearer('alice')), 'one')
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(json).toEqual({
    access_token: expect.stringMatching(/^pdt_/),
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    expires_in: expect.any(Number),
    scope: 'agent:read agent:write',
  })
  const authorization = `Bearer ${json.access_token}`
  const second = await exchange(await statementFor(two, authorization), 'two')
  expect(second.status).toBe(200)
  const named = await call('message/send', saying('weather forecast'), { authorization })
  expect([named.status, named.headers.get('x-agent')]).toEqual([200, 'two'])
  // The agent that received a statement is the only one that may exchange it.
  expect(await exchange(tokenIn(two.sent().at(-1)?.headers), 'one')).toMatchObject({
    status: 400,
    json: { error: 'invalid_request' },
  })
})

test('the token is accepted for messages and tasks only', async () => {
  const one = await agent('one', 'Plays chess')
  const { json } = await exchange(await statementFor(one, bearer('alice')), 'one')
  const authorization = `Bearer ${json.access_token}`
  const registration = await fetch(`${gateway().addresses.public}/registry/agents`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: '{}',
  })
  expect(registration.status).toBe(403)
  expect((await call('contexts/list', {}, { authorization })).json.error?.data?.reason).toBe(
    'delegated_token',
  )
  expect(await exchange(await statementFor(one, bearer('alice')), authorization)).toMatchObject({
    status: 401,
    json: { error: 'invalid_client' },
  })
})

test('a caller’s token that is revoked ends the chain at the next request', async () => {
  const one = await agent('one', 'Plays chess')
  await agent('two', 'Weather forecast')
  const token = identityProvider().issue('alice')
  const statement = await statementFor(one, `Bearer ${token}`)
  const { json } = await exchange(statement, 'one')
  const authorization = `Bearer ${json.access_token}`
  expect((await post('/agents/two/', rpc('message/send', saying('go')), { authorization })).status).toBe(200)
  identityProvider().revoke(token)
  expect(await post('/agents/two/', rpc('message/send', saying('go')), { authorization })).toMatchObject({
    status: 401,
    json: { error: { code: -32010 } },
  })
  expect(await exchange(statement, 'one')).toMatchObject({
    status: 400,
    json: { error: 'invalid_request', error_description: expect.stringContaining('not active') },
  })
})

test('statements and tokens survive a rotation of the keys and a restart of the gateway', async () => {
  const [one] = [await agent('one', 'Plays chess'), await agent('two', 'Weather forecast')]
  const statement = await statementFor(one, bearer('alice'))
  const { json } = await exchange(statement, 'one')
  const operator = { authorization: bearer('root', 'agent:admin') }
  for (const master of [false, true])
    expect((await post('/keys/rotate', JSON.stringify({ master }), operator)).status).toBe(200)
  await restart({ PORT: new URL(gateway().addresses.public).port })
  expect((await exchange(statement, 'one')).status).toBe(200)
  const authorization = `Bearer ${json.access_token}`
  // The token is active: a request for which it is not valid is refused for this reason.
  expect((await call('contexts/list', {}, { authorization })).json.error?.data?.reason).toBe(
    'delegated_token',
  )
})

test('an agent that is quarantined cannot act for its callers', async () => {
  const [one] = [await agent('one', 'Plays chess'), await agent('two', 'Weather forecast')]
  const statement = await statementFor(one, bearer('alice'))
  const { json } = await exchange(statement, 'one')
  const entry = gateway().registry.bySlug('one')
  await gateway().registry.quarantine(entry?.id ?? '', 'operator', 'lies')
  const authorization = `Bearer ${json.access_token}`
  expect((await post('/agents/two/', rpc('message/send', saying('go')), { authorization })).status).toBe(401)
  expect((await exchange(statement, 'one')).status).toBe(400)
  const issued = identityProvider().issue('alice', {
    act: { sub: 'one' },
    aud: gateway().addresses.public,
  })
  const refused = await post('/agents/two/', rpc('message/send', saying('go')), {
    authorization: `Bearer ${issued}`,
  })
  expect(refused.status).toBe(401)
})

test('an admitted agent that has proven its key exchanges its statement with the client that registered it', async () => {
  const sky = await agent('sky', 'Weather', {
    origin: 'registered',
    admittedBy: 'operator',
    did: 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK',
    owner: 'client of sky',
    card: bearerCard,
  })
  const statement = await statementFor(sky, bearer('alice'))
  expect((await exchange(statement, 'client of sky')).status).toBe(200)
  for (const client of ['sky', 'alice', 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK'])
    expect((await exchange(statement, client)).status).toBe(400)
})

test('an unverified agent of another operator cannot exchange its statement', async () => {
  const external = { origin: 'registered', admittedBy: 'operator', card: bearerCard }
  const sky = await agent('sky', 'Weather', { ...external, verified: false })
  const statement = await statementFor(sky, bearer('alice'))
  expect(await exchange(statement, 'sky')).toMatchObject({
    status: 400,
    json: { error: 'invalid_request' },
  })
  // It gets no form of the caller's token. Once it is verified, it needs one.
  expect(decodeJwt(statement)).not.toHaveProperty('sealed_subject')
  await sky.register('sky', 'Weather', { ...external, verified: true })
  expect(decodeJwt(await statementFor(sky, bearer('alice')))).toHaveProperty('sealed_subject')
})

test.each<[string, Record<string, string>, number, string]>([
  ['another grant', { grant_type: 'client_credentials' }, 400, 'unsupported_grant_type'],
  [
    'another type',
    { subject_token_type: 'urn:ietf:params:oauth:token-type:access_token' },
    400,
    'invalid_request',
  ],
  [
    'another requested type',
    { requested_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
    400,
    'invalid_request',
  ],
  ['no statement', { subject_token: '' }, 400, 'invalid_request'],
  ['no resource', { resource: '' }, 400, 'invalid_target'],
  ['another resource', { resource: 'https://other.example' }, 400, 'invalid_target'],
  ['the scope of operators', { scope: 'agent:admin' }, 400, 'invalid_scope'],
  ['a token of the caller as the statement', { subject_token: 'test-token' }, 400, 'invalid_request'],
])('a request with %s is refused', async (_what, more, status, error) => {
  const one = await agent('one', 'Plays chess')
  const statement = await statementFor(one, bearer('alice'))
  expect(await exchange(statement, 'one', more)).toMatchObject({
    status,
    json: { error, error_description: expect.any(String) },
  })
})

test('a request without an active token of the agent’s own client is refused', async () => {
  const one = await agent('one', 'Plays chess')
  const statement = await statementFor(one, bearer('alice'))
  const delegated = { act: { sub: 'someone' }, aud: gateway().addresses.public }
  for (const client of [
    undefined,
    'Bearer unknown',
    `Bearer ${statement}`,
    `Bearer ${identityProvider().issue('one', { aud: 'https://other.example' })}`,
    `Bearer ${identityProvider().issue('one', delegated)}`,
  ])
    expect(await exchange(statement, client)).toMatchObject({
      status: 401,
      json: { error: 'invalid_client', error_description: expect.any(String) },
    })
  identityProvider().fault = 'status 500'
  expect((await exchange(statement, `Bearer ${identityProvider().issue('one')}`)).status).toBe(503)
})

test('parameters may not be repeated, and the body must be a form', async () => {
  const one = await agent('one', 'Plays chess')
  const statement = await statementFor(one, bearer('alice'))
  const url = `${gateway().addresses.public}/oauth2/token`
  const headers = { authorization: bearer('one') }
  const body = new URLSearchParams([
    ['subject_token', statement],
    ['subject_token', statement],
  ])
  expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(400)
  const json = { ...headers, 'content-type': 'application/json' }
  expect((await fetch(url, { method: 'POST', headers: json, body: '{}' })).status).toBe(400)
  const large = new URLSearchParams({ subject_token: 'x'.repeat(60_000) })
  expect((await fetch(url, { method: 'POST', headers, body: large })).status).toBe(413)
})
