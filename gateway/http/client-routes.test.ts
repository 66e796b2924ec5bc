import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { alice, RegistrationGateway } from '../registration/testing.ts'

let deployment: RegistrationGateway
let operator: string
let id: string
let secret: string
let initialToken: string

beforeAll(async () => {
  deployment = await RegistrationGateway.open()
  await deployment.start({ REGISTRY_OPEN: 'yes' })
  operator = await deployment.operator()
  const file = path.join(deployment.folder, 'data', 'oauth', 'initial-access-token')
  initialToken = (await readFile(file, 'utf8')).trim()
})
afterAll(() => deployment[Symbol.asyncDispose]())
beforeEach(async () => {
  const { json } = await send('POST', '/oauth2/register', {
    token: initialToken,
    body: {
      client_name: 'Nightly report',
      grant_types: ['client_credentials'],
      scope: 'agent:read agent:write',
    },
  })
  id = String(json['client_id'])
  secret = String(json['client_secret'])
})

async function send(
  method: string,
  path: string,
  { token = operator, body }: { token?: string; body?: unknown } = {},
) {
  const response = await fetch(`${deployment.gateway.addresses.public}${path}`, {
    method,
    headers: {
      ...(token !== '' && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const json: Record<string, unknown> = text.startsWith('{') ? JSON.parse(text) : {}
  return { status: response.status, json, text }
}

async function tokenOf(form: Record<string, string> = {}): Promise<string> {
  const response = await fetch(`${deployment.gateway.addresses.public}/oauth2/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', ...form }),
  })
  const { access_token: token = '' } = (await response.json()) as { access_token?: string }
  return token
}

const rpc = (token: string) =>
  send('POST', '/', { token, body: { jsonrpc: '2.0', id: 1, method: 'tasks/list', params: {} } })

const client = () => ({
  id,
  name: 'Nightly report',
  scope: 'agent:read agent:write',
  kind: 'registered',
  enabled: true,
  tags: [],
  limits: {},
  created_at: expect.stringMatching(/^20/),
  last_token_at: null,
  last_used_at: null,
})

test('the operator lists clients in pages, without secrets', async () => {
  const ids: unknown[] = []
  for (let cursor = ''; ; ) {
    const { status, json, text } = await send('GET', `/clients?limit=2${cursor}`)
    expect(status).toBe(200)
    expect(text).not.toMatch(/secret|hash/)
    const { clients, next_cursor: next } = json as { clients: { id: string }[]; next_cursor: string | null }
    ids.push(...clients.map((one) => one.id))
    if (next === null) break
    cursor = `&cursor=${encodeURIComponent(next)}`
  }
  expect(ids).toContain(id)
  expect(ids).toContain('operator')
  expect(new Set(ids).size).toBe(ids.length)
  expect((await send('GET', `/clients?q=${id}`)).json).toEqual({ clients: [client()], next_cursor: null })
  expect((await send('GET', `/clients/${id}`)).json).toEqual(client())
})

test('the client of an agent is shown by its DID, percent-encoded', async () => {
  const agent = await deployment.serveAgent({ identity: alice })
  const bearer = await deployment.registered(alice)
  await deployment.join(agent.url, bearer, alice)
  const { json } = await send('GET', `/clients/${encodeURIComponent(alice.did)}`)
  expect(json).toMatchObject({ id: alice.did, kind: 'agent' })
  expect((await send('GET', '/clients/operator')).json).toMatchObject({ kind: 'managed' })
})

test('a limit, tags, a revocation and a removal take effect and are shown', async () => {
  const limits = { scope: 'agent:read', per_minute: 60, expires_at: '2099-01-01T00:00:00Z' }
  const limited = await send('POST', '/clients/limit', { body: { id, ...limits } })
  const shown = { ...limits, expires_at: '2099-01-01T00:00:00.000000+00:00' }
  expect(limited).toMatchObject({ status: 200, json: { id, limits: shown } })
  const tagged = await send('POST', '/clients/tag', { body: { id, tags: ['eu', 'trusted'] } })
  expect(tagged.json).toMatchObject({ tags: ['eu', 'trusted'], limits: shown })
  const token = await tokenOf()
  expect((await rpc(token)).status).toBe(200)
  expect((await send('POST', '/clients/revoke', { body: { id } })).json).toMatchObject({ enabled: false })
  expect(await rpc(token)).toMatchObject({ status: 401, json: { error: { code: -32010 } } })
  expect(await tokenOf()).toBe('')
  expect((await send('POST', '/clients/enable', { body: { id } })).json).toMatchObject({ enabled: true })
  expect((await rpc(await tokenOf())).status).toBe(200)
  expect((await send('DELETE', `/clients/${id}`)).json).toEqual({ success: true, id })
  expect((await send('GET', `/clients/${id}`)).status).toBe(404)
})

test.each<[string, string, (client: string) => unknown]>([
  ['limit', 'an unknown scope', (of) => ({ id: of, scope: 'agent:everything' })],
  ['limit', 'no requests', (of) => ({ id: of, per_minute: 0 })],
  ['limit', 'a text as time', (of) => ({ id: of, expires_at: 'tomorrow' })],
  ['limit', 'no resources', (of) => ({ id: of, resources: [] })],
  ['limit', 'a resource that is no address', (of) => ({ id: of, resources: ['calculator'] })],
  ['tag', 'an invalid tag', (of) => ({ id: of, tags: ['No tag'] })],
  ['tag', 'too many tags', (of) => ({ id: of, tags: Array.from({ length: 51 }, (_, n) => `t${n}`) })],
  ['revoke', 'no client', () => ({})],
])('POST /clients/%s with %s: 400', async (action, _what, body) => {
  expect((await send('POST', `/clients/${action}`, { body: body(id) })).status).toBe(400)
})

test('an unknown client: 404; the operator’s own client and managed clients are protected: 409', async () => {
  expect((await send('POST', '/clients/revoke', { body: { id: 'unknown' } })).status).toBe(404)
  expect((await send('POST', '/clients/revoke', { body: { id: 'operator' } })).status).toBe(409)
  expect((await send('POST', '/clients/limit', { body: { id: 'operator' } })).status).toBe(409)
  expect((await send('DELETE', '/clients/operator')).status).toBe(409)
  expect((await send('DELETE', '/clients/dev-client')).status).toBe(409)
})

test('only operators manage clients, and changes and refusals are in the audit log', async () => {
  const token = await tokenOf()
  for (const [method, path, body] of [
    ['GET', '/clients', undefined],
    ['GET', `/clients/${id}`, undefined],
    ['DELETE', `/clients/${id}`, undefined],
    ['POST', '/clients/enable', { id }],
  ] as const) {
    expect((await send(method, path, { token, body })).status).toBe(403)
    expect((await send(method, path, { token: '', body })).status).toBe(401)
  }
  await send('POST', '/clients/tag', { body: { id, tags: [] } })
  const lines = deployment.logged.filter((line) => line.includes('"audit":true'))
  expect(lines.some((line) => line.includes('clients.remove') && line.includes('"allowed":false'))).toBe(true)
  expect(lines.some((line) => line.includes('clients.tag') && line.includes(id))).toBe(true)
})

const gatewayToken = () => tokenOf({ resource: deployment.gateway.addresses.public })

test('a token that is valid at every server creates no key', async () => {
  expect(await send('POST', '/client-keys', { token: await tokenOf(), body: {} })).toMatchObject({
    status: 403,
    json: { error: { data: { reason: 'unrestricted_token' } } },
  })
})

test('a client creates a key, uses it as a bearer token, lists it and revokes it', async () => {
  const token = await gatewayToken()
  const made = await send('POST', '/client-keys', { token, body: { name: 'cron', scope: 'agent:read' } })
  expect(made.status).toBe(201)
  const { key, details } = made.json as { key: string; details: { id: string } }
  expect(details).toEqual({
    id: expect.stringMatching(/^[\da-f]{32}$/),
    client: id,
    name: 'cron',
    scope: 'agent:read',
    resource: deployment.gateway.addresses.public,
    created_at: expect.any(String),
    expires_at: expect.any(String),
  })
  expect((await rpc(key)).status).toBe(200)
  const listed = await send('GET', '/client-keys', { token })
  expect(listed.json).toEqual({ keys: [details] })
  expect(listed.text).not.toContain(key)
  expect((await send('GET', `/client-keys?client=${id}`)).json).toEqual({ keys: [details] })
  expect((await send('DELETE', `/client-keys/${details.id}`, { token })).status).toBe(200)
  expect(await rpc(key)).toMatchObject({ status: 401, json: { error: { code: -32010 } } })
  expect((await send('DELETE', `/client-keys/${details.id}`, { token })).status).toBe(404)
})

test('a key has at most the scopes, the audience and the client of the token that creates it', async () => {
  const create = (token: string, body: object) => send('POST', '/client-keys', { token, body })
  const reader = await tokenOf({ scope: 'agent:read', resource: deployment.gateway.addresses.public })
  expect((await create(reader, { scope: 'agent:write' })).status).toBe(403)
  expect((await create(reader, { scope: 'agent:admin', admin: true })).status).toBe(403)
  expect((await create(reader, { client: 'dev-client' })).status).toBe(403)
  const bound = await tokenOf({ resource: deployment.gateway.addresses.public })
  expect((await create(bound, { resource: 'https://agent.example' })).status).toBe(403)
  const gateway = deployment.gateway.addresses.public
  expect((await create(bound, { resource: `${gateway}/agents/poet` })).status).toBe(403)
  for (const resource of [`${gateway}/mcp`, `${gateway}/v1`, `${gateway}/agents/poet/mcp`])
    expect((await create(bound, { resource })).json).toMatchObject({ details: { resource } })
  const { json } = await create(bound, {})
  expect(json).toMatchObject({ details: { resource: deployment.gateway.addresses.public } })
})

test('a key creates no keys and shows no keys of other clients', async () => {
  const { json } = await send('POST', '/client-keys', { body: { client: id } })
  const { key } = json as { key: string }
  expect(await send('POST', '/client-keys', { token: key, body: {} })).toMatchObject({
    status: 403,
    json: { error: { data: { reason: 'key' } } },
  })
  expect((await send('GET', '/client-keys?client=dev-client', { token: key })).status).toBe(403)
})

/** Returns a token that a person approves for an application. */
async function approvedToken(): Promise<string> {
  const origin = deployment.gateway.addresses.public
  const redirectUri = 'http://127.0.0.1:9/cb'
  const app = await send('POST', '/oauth2/register', {
    token: initialToken,
    body: {
      client_name: 'Desk',
      application_type: 'native',
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code'],
      scope: 'agent:read',
    },
  })
  const clientId = String(app.json['client_id'])
  const verifier = 'v'.repeat(43)
  const cookies = new Map<string, string>()
  const go = async (address: string, form?: Record<string, string>) => {
    const response = await fetch(new URL(address, origin), {
      redirect: 'manual',
      headers: { accept: 'text/html', cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    return response.headers.get('location') ?? ''
  }
  const query = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'agent:read',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const code = (await readFile(path.join(deployment.folder, 'data/oauth/sign-in-code'), 'utf8')).trim()
  const page = await go(`/oauth2/authorize?${query.toString()}`)
  const back = new URL(await go(await go(page, { decision: 'approve', code })))
  const response = await fetch(`${origin}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      code: back.searchParams.get('code') ?? '',
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }),
  })
  return ((await response.json()) as { access_token: string }).access_token
}

test('an application creates no key with a token that a person has approved', async () => {
  const token = await approvedToken()
  expect((await rpc(token)).status).toBe(200)
  expect(await send('POST', '/client-keys', { token, body: {} })).toMatchObject({
    status: 403,
    json: { error: { data: { reason: 'approval' } } },
  })
})

test('a key lasts 90 days by default and at most 365', async () => {
  const create = (body: object) => send('POST', '/client-keys', { body: { client: id, ...body } })
  const { details } = (await create({})).json as { details: { expires_at: string; created_by: string } }
  const days = (Date.parse(details.expires_at) - Date.now()) / 86_400_000
  expect(Math.round(days)).toBe(90)
  expect(details.created_by).toBe('operator')
  expect((await create({ lifetime_seconds: 365 * 86_400 })).status).toBe(201)
  expect((await create({ lifetime_seconds: 365 * 86_400 + 1 })).status).toBe(400)
})

test('a key with agent:admin needs an operator, a confirmation and a lifetime of at most 90 days', async () => {
  const create = (body: object) => send('POST', '/client-keys', { body: { scope: 'agent:admin', ...body } })
  expect(await create({})).toMatchObject({
    status: 403,
    json: { error: { data: { reason: 'operator_key' } } },
  })
  expect((await create({ admin: true, lifetime_seconds: 91 * 86_400 })).status).toBe(400)
  expect((await create({ admin: true, client: id })).status).toBe(403)
  const { json } = await create({ admin: true, lifetime_seconds: 86_400 })
  const { key, details } = json as { key: string; details: { id: string } }
  expect((await send('GET', '/clients?limit=1', { token: key })).status).toBe(200)
  await send('DELETE', `/client-keys/${details.id}`)
  expect((await send('GET', '/clients?limit=1', { token: key })).status).toBe(401)
})

test('a revoked client, a removed one and a client with bound tokens get no key', async () => {
  await send('POST', '/clients/revoke', { body: { id } })
  expect((await send('POST', '/client-keys', { body: { client: id } })).status).toBe(409)
  await send('DELETE', `/clients/${id}`)
  expect((await send('POST', '/client-keys', { body: { client: id } })).status).toBe(404)
  const { json } = await send('POST', '/oauth2/register', {
    token: initialToken,
    body: {
      client_name: 'bound',
      grant_types: ['client_credentials'],
      scope: 'agent:read',
      dpop_bound_access_tokens: true,
    },
  })
  const refused = await send('POST', '/client-keys', { body: { client: json['client_id'] } })
  expect(refused).toMatchObject({ status: 409, json: { error: { data: { reason: 'sender_constrained' } } } })
})
