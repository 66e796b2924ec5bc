import { readFile } from 'node:fs/promises'
import { Authenticator } from '@parley/kit/auth/authenticate'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { alice, RegistrationGateway } from '../registration/testing.ts'
import { mcpRecipient, protectedResourceAt, protectedResourceMetadata } from './protected-resource-routes.ts'

/** The gateway sends a token only to external agents that declare this. */
const card = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
const wellKnown = '/.well-known/oauth-protected-resource'

let deployment: RegistrationGateway
beforeAll(async () => {
  deployment = await RegistrationGateway.open()
  await deployment.start()
  const { url } = await deployment.serveAgent({ identity: alice, name: 'poet', card })
  await deployment.join(url, await deployment.registered(alice), alice)
  await deployment.send('POST', '/registry/agents/poet/admit', await deployment.operator())
})
afterAll(() => deployment[Symbol.asyncDispose]())
const origin = () => deployment.gateway.addresses.public

async function get(path: string) {
  const response = await fetch(`${origin()}${path}`)
  return { status: response.status, headers: response.headers, json: await response.json() }
}

/** Requests a token of the development client for a resource. */
async function requestToken(resource?: string) {
  const file = `${deployment.folder}/data/dev-client.json`
  const { client_id = '', client_secret = '' } = JSON.parse(await readFile(file, 'utf8')) as Record<
    string,
    string
  >
  const form = { grant_type: 'client_credentials', client_id, client_secret, ...(resource && { resource }) }
  const response = await fetch(`${origin()}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  })
  return (await response.json()) as { access_token: string; error?: string; error_description?: string }
}
const tokenFor = async (path: string) => (await requestToken(`${origin()}${path}`)).access_token

const challengeOf = async (path: string, init: RequestInit = { method: 'POST' }) => {
  const response = await fetch(`${origin()}${path}`, init)
  return [response.status, response.headers.get('www-authenticate')]
}

test.each([
  ['', 'Parley'],
  ['/mcp', 'Parley (MCP)'],
  ['/v1', 'Parley (OpenAI-compatible API)'],
  ['/agents/poet', 'poet (Parley)'],
  ['/agents/poet/mcp', 'poet (Parley)'],
])('the metadata of %j names its OAuth server and its scopes', async (path, name) => {
  const { status, json } = await get(`${wellKnown}${path}`)
  expect(status).toBe(200)
  expect(protectedResourceMetadata.parse(json)).toEqual({
    resource: `${origin()}${path}`,
    resource_name: name,
    authorization_servers: [`${origin()}/oauth2`],
    scopes_supported: ['agent:read', 'agent:write'],
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: ['ES256', 'Ed25519', 'EdDSA'],
  })
})

test('the metadata of an agent that the caller may not see and of an unknown agent are the same', async () => {
  const policy = { rules: [], default: 'deny' }
  const operator = await deployment.operator()
  await deployment.send('PUT', '/registry/agents/poet/policy', operator, policy)
  const [hidden, unknown] = [
    await get(`${wellKnown}/agents/poet/mcp`),
    await get(`${wellKnown}/agents/xxxx/mcp`),
  ]
  await deployment.send('DELETE', '/registry/agents/poet/policy', operator)
  expect(JSON.stringify(hidden.json)).toBe(JSON.stringify(unknown.json).replaceAll('xxxx', 'poet'))
  expect(hidden.json).toMatchObject({ resource_name: 'agent (Parley)' })
})

test.each([
  ['/.well-known/oauth-authorization-server/oauth2', '/oauth2'],
  ['/.well-known/openid-configuration/oauth2', '/oauth2'],
  ['/oauth2/.well-known/openid-configuration', '/oauth2'],
  ['/oauth2/.well-known/oauth-authorization-server', '/oauth2'],
  ['/.well-known/oauth-authorization-server', ''],
  ['/.well-known/openid-configuration', ''],
])('%s is the metadata of the issuer at %j', async (path, issuer) => {
  const { status, json } = await get(path)
  expect([status, json]).toMatchObject([
    200,
    {
      issuer: `${origin()}${issuer}`,
      token_endpoint: `${origin()}/oauth2/token`,
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    },
  ])
})

test('a 401 names the metadata of the resource and the scopes to request', async () => {
  const metadata = `resource_metadata="${origin()}${wellKnown}", scope="agent:read agent:write"`
  expect(await challengeOf('/')).toEqual([401, `Bearer ${metadata}`])
  const headers = { authorization: 'Bearer none' }
  expect(await challengeOf('/registry/agents', { headers, method: 'POST' })).toEqual([
    401,
    `Bearer error="invalid_token", error_description="The token is not active", ${metadata}`,
  ])
  const [status, challenge] = await challengeOf('/agents/poet/', { headers, method: 'POST' })
  expect([status, challenge]).toEqual([
    401,
    expect.stringContaining(`resource_metadata="${origin()}${wellKnown}/agents/poet"`),
  ])
})

test('a 403 for a missing scope names the scope and the metadata', async () => {
  const headers = { authorization: `Bearer ${await tokenFor('')}` }
  expect(await challengeOf('/clients', { headers })).toEqual([
    403,
    `Bearer error="insufficient_scope", scope="agent:admin", resource_metadata="${origin()}${wellKnown}"`,
  ])
})

test.each([
  ['/mcp', '/mcp'],
  ['/mcp/', '/mcp'],
  ['/mcpx', ''],
  ['/v1/chat/completions', '/v1'],
  ['/agents/poet/mcp', '/agents/poet/mcp'],
  ['/agents/poet/mcpx', '/agents/poet'],
  ['/agents/poet/tasks', '/agents/poet'],
  ['/agents/a"b/mcp', ''],
])('%s belongs to the resource %j', (path, resource) => {
  expect(protectedResourceAt('https://gateway.example', path).resource).toBe(
    `https://gateway.example${resource}`,
  )
})

test('a token names the canonical address of a resource of the gateway', async () => {
  const { host } = new URL(origin())
  for (const resource of [`HTTP://${host}/mcp`, `${origin()}/mcp/`, `${origin()}/mcp`]) {
    const { access_token } = await requestToken(resource)
    expect(await introspect(access_token)).toMatchObject({ active: true, aud: `${origin()}/mcp` })
  }
})

async function introspect(token: string) {
  const file = `${deployment.folder}/data/dev-client.json`
  const { client_id = '', client_secret = '' } = JSON.parse(await readFile(file, 'utf8')) as Record<
    string,
    string
  >
  const body = new URLSearchParams({ token, client_id, client_secret })
  const response = await fetch(`${origin()}/oauth2/introspect`, { method: 'POST', body })
  return (await response.json()) as { active: boolean; aud?: string }
}

test('a client gets a token for the MCP endpoint of an agent that it may call, and for no other', async () => {
  expect(await introspect(await tokenFor('/agents/poet/mcp'))).toMatchObject({ active: true })
  expect(await requestToken(`${origin()}/agents/none/mcp`)).toMatchObject({ error: 'invalid_target' })
  expect(await requestToken(`${origin()}/agents/poet/mcp/mcp`)).toMatchObject({ error: 'invalid_target' })
})

const authenticateAt = async (token: string, slug?: string, requiresAudience = false) => {
  const authenticator = new Authenticator({ introspect }, () => [origin()])
  const request = { headers: { authorization: `Bearer ${token}` }, method: 'POST', url: '/' }
  const recipient = mcpRecipient({ gatewayUrl: origin(), requiresAudience }, slug)
  const caller = await authenticator.authenticateAt(recipient, request).catch((error: Error) => error.message)
  return typeof caller === 'string' ? caller : 'accepted'
}

test('a token for one resource is refused at the others, and a token for the gateway is accepted by all', async () => {
  const another = 'The token is for another audience'
  const mcp = await tokenFor('/mcp')
  const poet = await tokenFor('/agents/poet/mcp')
  const gateway = await tokenFor('')
  expect(await Promise.all([mcp, poet, gateway].map((token) => authenticateAt(token)))).toEqual([
    'accepted',
    another,
    'accepted',
  ])
  expect(await Promise.all([mcp, poet, gateway].map((token) => authenticateAt(token, 'poet')))).toEqual([
    another,
    'accepted',
    'accepted',
  ])
  expect(await authenticateAt(poet, 'other')).toBe(another)
  for (const token of [mcp, poet]) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/list', params: {} })
    const sent = { method: 'POST', headers, body }
    expect((await fetch(`${origin()}/`, sent)).status).toBe(401)
    const atAgent = await fetch(`${origin()}/agents/poet/`, sent)
    expect([atAgent.status, await atAgent.json()]).toMatchObject([
      403,
      { error: { data: { reason: 'wrong_audience' } } },
    ])
  }
})

test('a token without an audience is accepted unless the recipient requires one', async () => {
  const { access_token } = await requestToken()
  expect(await authenticateAt(access_token)).toBe('accepted')
  expect(await authenticateAt(access_token, undefined, true)).toContain(`resource=${origin()}/mcp`)
})
