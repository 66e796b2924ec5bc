import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Answer,
  Browser,
  s256,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from '../testing.ts'
import type { FetchedDocument } from './metadata-documents.ts'

const clientId = 'https://app.example/oauth/client.json'
const document = {
  client_id: clientId,
  client_name: 'Example host',
  redirect_uris: ['http://127.0.0.1/callback', 'https://app.example/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
}
const native = {
  client_name: 'Example host',
  redirect_uris: ['http://127.0.0.1:1/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
}
const redirectUri = 'http://127.0.0.1:49152/callback'
const verifier = 'v'.repeat(43)

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let code: string
/** The documents by address; a function answers itself. */
const documents = new Map<string, unknown>()
const requested: string[] = []

async function fetchDocument(url: string): Promise<FetchedDocument> {
  requested.push(url)
  const found = documents.get(url)
  if (found instanceof Error) throw found
  if (found === undefined) return { status: 404, headers: {}, text: '' }
  return { status: 200, headers: {}, text: typeof found === 'string' ? found : JSON.stringify(found) }
}

beforeAll(async () => {
  folder = await temporaryFolder()
  await start()
  code = (await readFile(path.join(folder.dir, 'oauth/sign-in-code'), 'utf8')).trim()
})
afterEach(() => {
  vi.useRealTimers()
  // The rate limits of one test do not apply to the next.
  using database = new DatabaseSync(server.databaseFile)
  database.exec("DELETE FROM oauth_entries WHERE model IN ('DocumentFetch', 'OpenRegistration')")
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

async function start(port?: number) {
  const unverified = { openRegistration: true, fetchDocument }
  server = await startIdentityProvider({ dir: folder.dir, unverified, ...(port !== undefined && { port }) })
}

const location = (answer: Answer) => answer.headers.get('location') ?? ''

/** Opens the approval page. */
async function open(change: Record<string, string> = {}) {
  const parameters = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'agent:read agent:write',
    resource: `${server.origin}/mcp`,
    state: 's',
    code_challenge: s256(verifier),
    code_challenge_method: 'S256',
    ...change,
  })
  const browser = new Browser(server)
  const answer = await browser.go(`/oauth2/authorize?${parameters.toString()}`)
  return { browser, answer, page: location(answer) }
}

/** Approves the client and returns its tokens. */
async function tokensOf(change: Record<string, string> = {}, more: Record<string, string> = {}) {
  const { browser, page } = await open(change)
  const approved = await browser.go(page, { decision: 'approve', code })
  const back = new URL(location(await browser.go(location(approved))))
  const { body } = await server.post('/oauth2/token', {
    grant_type: 'authorization_code',
    client_id: change['client_id'] ?? clientId,
    code: back.searchParams.get('code') ?? '',
    redirect_uri: change['redirect_uri'] ?? redirectUri,
    code_verifier: verifier,
    resource: `${server.origin}/mcp`,
    ...more,
  })
  return body
}

/** Registers a client without a token. */
const register = (metadata: object) =>
  server.fetch('/oauth2/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  })

describe('a client with a metadata document', () => {
  test('gets tokens for one resource after a person has approved it, also after a restart', async () => {
    documents.set(clientId, document)
    const tokens = await tokensOf()
    expect(await server.provider.introspect(String(tokens['access_token']))).toMatchObject({
      active: true,
      client_id: clientId,
      sub: 'operator',
      scope: 'agent:read agent:write',
      aud: `${server.origin}/mcp`,
    })
    const port = Number(new URL(server.origin).port)
    await server[Symbol.asyncDispose]()
    await start(port)
    const refreshed = await server.post('/oauth2/token', {
      grant_type: 'refresh_token',
      client_id: clientId,
      refresh_token: String(tokens['refresh_token']),
    })
    expect(refreshed.status).toBe(200)
    expect(refreshed.body['refresh_token']).not.toBe(tokens['refresh_token'])
  })

  test('authenticates with a key of its document, if it states one', async () => {
    const id = 'https://signing.example/client.json'
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const jwks = { keys: [await exportJWK(publicKey)] }
    documents.set(id, { ...document, client_id: id, token_endpoint_auth_method: 'private_key_jwt', jwks })
    const claims = { iss: id, sub: id, aud: `${server.origin}/oauth2`, jti: 'one' }
    const signed = new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256' })
      .setExpirationTime('1m')
      .sign(privateKey)
    const assertion = {
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: await signed,
    }
    expect((await tokensOf({ client_id: id }))['error']).toBe('invalid_client')
    expect(await tokensOf({ client_id: id }, assertion)).toMatchObject({ token_type: 'Bearer' })
  })

  test('is announced in the metadata of the server', async () => {
    const { body } = await server.fetch('/.well-known/oauth-authorization-server/oauth2')
    expect(body).toMatchObject({ client_id_metadata_document_supported: true })
  })

  test('is read once while it is cached, and once for many requests at a time', async () => {
    const id = 'https://cached.example/client.json'
    documents.set(id, { ...document, client_id: id })
    const count = () => requested.filter((url) => url === id).length
    await Promise.all(Array.from({ length: 5 }, () => open({ client_id: id })))
    expect(count()).toBe(1)
    await open({ client_id: id })
    expect(count()).toBe(1)
  })

  const bad: [string, unknown][] = [
    ['a missing document', undefined],
    ['an unreachable address', new Error('refused')],
    ['no JSON', '<html>'],
    ['another type', '[]'],
    ['another client_id', { ...document, client_id: 'https://app.example/other.json' }],
    ['a secret', { ...document, client_secret: 'x'.repeat(30) }],
    ['authentication by a secret', { ...document, token_endpoint_auth_method: 'client_secret_basic' }],
    ['no redirect URI', { ...document, redirect_uris: undefined }],
    [
      'an unsafe redirect URI',
      { ...document, redirect_uris: ['http://app.example/cb', 'app:/cb', 'javascript:1'] },
    ],
    [
      'a private key',
      { ...document, token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ kty: 'EC', d: 'x' }] } },
    ],
    ['deep nesting', `${'['.repeat(5000)}${']'.repeat(5000)}`],
  ]
  test.each(bad)('with %s is refused on a page that names the next step', async (title, content) => {
    const id = `https://bad.example/${encodeURIComponent(title)}.json`
    const given =
      typeof content === 'object' &&
      content !== null &&
      'client_name' in content &&
      title !== 'another client_id'
        ? { ...content, client_id: id }
        : content
    documents.set(id, given)
    const { answer } = await open({ client_id: id })
    expect([answer.status, location(answer)]).toEqual([400, ''])
    expect(answer.text).toContain('Ask the developer of the application')
  })

  test.each([
    'http://app.example/client.json',
    'https://user@app.example/client.json',
    'https://app.example/a/../client.json',
    'https://app.example/client.json#a',
    `https://app.example/${'x'.repeat(600)}`,
  ])('is not read from %s', async (id) => {
    const before = requested.length
    expect((await open({ client_id: id })).answer.status).toBe(400)
    expect(requested.length).toBe(before)
  })

  test('gets no scope of the operator and no scope that this server does not know', async () => {
    const id = 'https://scopes.example/client.json'
    documents.set(id, { ...document, client_id: id, scope: 'agent:read agent:admin profile', managed: true })
    const { answer } = await open({ client_id: id, scope: 'agent:admin' })
    expect(location(answer)).toContain('error=invalid_scope')
    expect((await tokensOf({ client_id: id, scope: 'agent:read' }))['scope']).toBe('agent:read')
  })

  test('is listed after its approval, and refused after an operator has revoked it', async () => {
    const { clients } = server.provider
    const id = 'https://listed.example/client.json'
    documents.set(id, { ...document, client_id: id })
    expect(await clients.find(id)).toBeUndefined()
    const token = String((await tokensOf({ client_id: id }))['access_token'])
    expect(await clients.find(id)).toMatchObject({ id, name: 'Example host', provenance: 'document' })
    await clients.revoke(id)
    expect(await server.provider.introspect(token)).toEqual({ active: false })
    expect((await open({ client_id: id })).answer.status).toBe(400)
    await clients.remove(id)
    expect(await clients.find(id)).toBeUndefined()
  })

  test('requests to read documents of one host are limited', async () => {
    const ids = Array.from({ length: 14 }, (_, index) => `https://flood.example/${index}.json`)
    for (const id of ids) await open({ client_id: id })
    expect(requested.filter((url) => url.startsWith('https://flood.example/')).length).toBeLessThan(
      ids.length,
    )
  })

  test('its approval page names the host of the document and where the browser continues', async () => {
    documents.set(clientId, document)
    const { browser, page } = await open()
    const { text } = await browser.go(page)
    expect(text).toContain('Allow <bdi>Example host</bdi> to use your agents?')
    expect(text).toContain('described by <strong>app.example</strong>')
    expect(text).toContain('The name is a claim of app.example. Any program on this device')
    expect(text).toContain('<code>127.0.0.1:49152</code>, a program on this device')
    expect(text).toContain('all agents of this gateway, through MCP')
    expect(text).toContain('npx parley token --sign-in-code')
  })
})

describe('registration without the initial access token', () => {
  test('creates a public client, which gets tokens after a person has approved it', async () => {
    const { status, body } = await register({
      ...native,
      token_endpoint_auth_method: 'client_secret_post',
      scope: 'agent:admin agent:read agent:write openid',
      managed: true,
      introspection: true,
      public_key: 'x',
      jwks_uri: 'https://app.example/jwks',
    })
    expect([status, body]).toMatchObject([
      201,
      {
        token_endpoint_auth_method: 'none',
        scope: 'agent:read agent:write',
        grant_types: ['authorization_code', 'refresh_token'],
        application_type: 'native',
      },
    ])
    for (const field of [
      'client_secret',
      'registration_access_token',
      'managed',
      'introspection',
      'public_key',
    ])
      expect(body).not.toHaveProperty(field)
    const id = String(body['client_id'])
    expect(await tokensOf({ client_id: id })).toMatchObject({ scope: 'agent:read agent:write' })
    expect(await server.provider.clients.find(id)).toMatchObject({ provenance: 'open' })
  })

  test.each<[string, object]>([
    ['no redirect URI', { ...native, redirect_uris: [] }],
    ['a redirect URI without https', { ...native, redirect_uris: ['http://app.example/cb'] }],
    ['a redirect URI of another scheme', { ...native, redirect_uris: ['app://callback'] }],
    ['a chosen id', { ...native, client_id: 'did:web:app.example' }],
    ['a name with control characters', { ...native, client_name: 'a\u202eb' }],
    ['a name that is no text', { ...native, client_name: {} }],
    ['no object', []],
  ])('is refused with %s', async (_title, metadata) => {
    expect((await register(metadata)).status).toBe(400)
  })

  test('a client that registered so cannot use client credentials or change its registration', async () => {
    const { body } = await register(native)
    const id = String(body['client_id'])
    const form = { grant_type: 'client_credentials', client_id: id }
    expect((await server.post('/oauth2/token', form)).status).toBe(400)
    expect((await server.fetch(`/oauth2/register/${id}`)).status).toBe(401)
  })

  test('with the initial access token, a client cannot claim to be one that registered itself', async () => {
    expect((await server.register({ ...native, provenance: 'open' })).body['error']).toBe(
      'invalid_client_metadata',
    )
  })

  test('the approval page states that the name is not verified', async () => {
    const { body } = await register({ ...native, client_name: 'Claude' })
    const { browser, page } = await open({ client_id: String(body['client_id']) })
    const { text } = await browser.go(page)
    expect(text).toContain('not verified; it registered itself')
    expect(text).toContain('any program can register under any name')
  })

  test('an unused client is removed after a day, and an approved one is kept for sixty', async () => {
    const [unused, approved] = [await register(native), await register(native)].map(({ body }) =>
      String(body['client_id']),
    )
    await tokensOf({ client_id: approved ?? '' })
    const isListed = async (id = '') => (await server.provider.clients.find(id)) !== undefined
    const hours = (count: number) => vi.setSystemTime(Date.now() + count * 3_600_000)
    vi.useFakeTimers({ toFake: ['Date'] })
    hours(26)
    await server.provider.sweep()
    expect(await Promise.all([isListed(unused), isListed(approved)])).toEqual([false, true])
    hours(60 * 24)
    await server.provider.sweep()
    expect(await isListed(approved)).toBe(false)
  })

  test('is limited by address, while registration with the initial access token is not', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => register(native)))
    const refused = answers.find(({ status }) => status === 429)
    expect(refused?.body).toMatchObject({ error: 'temporarily_unavailable' })
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThan(0)
    expect((await server.register(native)).status).toBe(201)
  })
})

test('without the settings, neither documents nor registrations without a token are accepted', async () => {
  const own = await temporaryFolder()
  await using _own = own
  await using closed = await startIdentityProvider({ dir: own.dir })
  const { body } = await closed.fetch('/.well-known/oauth-authorization-server/oauth2')
  expect(body).not.toHaveProperty('client_id_metadata_document_supported')
  const answer = await closed.fetch('/oauth2/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(native),
  })
  expect(answer.status).toBe(401)
  expect(answer.body['error_description']).toContain('npx parley token --initial')
})
