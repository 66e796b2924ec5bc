import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  basic,
  type Credentials,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from './testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let agent: Credentials
let checker: Credentials
const did = 'did:parley:alice:agent:0b1c2d3e-1111-4222-8333-444455556666'
const publicKey = '4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS'

beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
  agent = await server.provider.ensureClient({
    clientId: did,
    clientName: 'alice',
    scope: 'agent:read agent:write',
    publicKey,
  })
  checker = await server.provider.ensureClient({
    clientId: 'gateway',
    clientName: 'gateway',
    scope: 'agent:read',
    introspection: true,
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const introspect = async (token: string, as: Credentials = checker) =>
  (await server.post('/oauth2/introspect', { token }, as)).body

describe('metadata (RFC 8414)', () => {
  const paths = [
    '/.well-known/oauth-authorization-server',
    '/.well-known/oauth-authorization-server/oauth2',
    '/oauth2/.well-known/oauth-authorization-server',
    '/oauth2/.well-known/openid-configuration',
  ]
  test.each(paths)('%s lists every endpoint below the issuer', async (path) => {
    const { status, body } = await server.fetch(path)
    const issuer = `${server.origin}/oauth2`
    expect(status).toBe(200)
    const named =
      path === '/.well-known/oauth-authorization-server'
        ? { issuer: server.origin, authorization_endpoint: `${issuer}/authorize?parley_issuer=origin` }
        : { issuer, authorization_endpoint: `${issuer}/authorize` }
    expect(body).toMatchObject({
      ...named,
      token_endpoint: `${issuer}/token`,
      introspection_endpoint: `${issuer}/introspect`,
      revocation_endpoint: `${issuer}/revoke`,
      registration_endpoint: `${issuer}/register`,
      parley_client_metadata_uri_template: `${issuer}/clients/{client_id}`,
      scopes_supported: ['agent:read', 'agent:write', 'agent:execute', 'agent:admin'],
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
    })
    expect([...(body['grant_types_supported'] as string[])].sort()).toEqual([
      'authorization_code',
      'client_credentials',
      'refresh_token',
      'urn:ietf:params:oauth:grant-type:token-exchange',
    ])
  })

  test('the Host and X-Forwarded-* headers of the request do not change any URL', async () => {
    const headers = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' }
    const { text } = await server.fetch('/.well-known/oauth-authorization-server', { headers })
    expect(text).not.toContain('evil.example')
    expect(text).not.toContain('https://127')
  })
})

describe('client credentials', () => {
  test('a client whose id is a DID gets an opaque token for an hour with HTTP Basic', async () => {
    const { status, body, headers } = await server.post(
      '/oauth2/token',
      { grant_type: 'client_credentials', scope: 'agent:read' },
      agent,
    )
    expect(status).toBe(200)
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 3600, scope: 'agent:read' })
    expect(body['access_token']).toMatch(/^[\w-]{43}$/)
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test('client_secret_post is also accepted', async () => {
    const { status } = await server.post('/oauth2/token', {
      grant_type: 'client_credentials',
      client_id: agent.clientId,
      client_secret: agent.clientSecret,
    })
    expect(status).toBe(200)
  })

  test('the token gets the client’s scope if the request has none', async () => {
    expect(await introspect(await server.token(agent))).toMatchObject({ scope: 'agent:read agent:write' })
  })

  test('agent:admin is granted only to a managed client that requests it', async () => {
    const operator = await server.provider.ensureClient({
      clientId: 'operator-cli',
      clientName: 'operator',
      scope: 'agent:read agent:admin',
    })
    expect(await introspect(await server.token(operator))).toMatchObject({ scope: 'agent:read' })
    const token = await server.token(operator, { scope: 'agent:admin' })
    expect(await introspect(token)).toMatchObject({ scope: 'agent:admin' })
  })

  const refused: [string, Record<string, string>, Partial<Credentials> | undefined, number, string][] = [
    ['a wrong secret', {}, { clientSecret: 'wrong' }, 401, 'invalid_client'],
    ['an unknown client', {}, { clientId: 'nobody' }, 401, 'invalid_client'],
    ['no client at all', {}, undefined, 400, 'invalid_request'],
    ['a scope that the client does not have', { scope: 'agent:execute' }, {}, 400, 'invalid_scope'],
    ['the operator scope', { scope: 'agent:admin' }, {}, 400, 'invalid_scope'],
    ['a grant that does not exist', { grant_type: 'password' }, {}, 400, 'unsupported_grant_type'],
    ['an invalid resource', { resource: 'here' }, {}, 400, 'invalid_target'],
    ['a resource with another scheme', { resource: 'file:///etc/passwd' }, {}, 400, 'invalid_target'],
  ]
  test.each(refused)('%s is refused according to RFC 6749', async (_title, form, as, status, error) => {
    const credentials = as === undefined ? undefined : { ...agent, ...as }
    const answer = await server.post(
      '/oauth2/token',
      { grant_type: 'client_credentials', ...form },
      credentials,
    )
    expect(answer.status).toBe(status)
    expect(answer.body['error']).toBe(error)
    expect(answer.headers.get('content-type')).toContain('application/json')
  })

  test('cross-origin requests are allowed only from the server’s own pages', async () => {
    const from = (origin: string) =>
      server.fetch('/oauth2/token', {
        method: 'POST',
        headers: { origin },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: agent.clientId,
          client_secret: agent.clientSecret,
        }),
      })
    expect((await from(server.origin)).status).toBe(200)
    for (const origin of ['https://mallory.example', 'null', `${server.origin}.mallory.example`]) {
      const refused = await from(origin)
      expect([refused.status, refused.body['error']]).toEqual([400, 'invalid_request'])
      expect(refused.headers.get('access-control-allow-origin')).toBeNull()
    }
  })

  test('browsers also receive errors as JSON', async () => {
    const { body } = await server.fetch('/oauth2/token', { method: 'POST', headers: { accept: 'text/html' } })
    expect(body['error']).toBe('invalid_request')
  })

  test('a wrong secret is not logged', async () => {
    await server.post(
      '/oauth2/token',
      { grant_type: 'client_credentials' },
      { ...agent, clientSecret: 'sEcReT-x' },
    )
    await server.fetch('/oauth2/register', {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer wRoNg-token' },
      body: 'sEcReT-x {',
    })
    expect(server.logged()).toContain('invalid_client')
    expect(server.logged()).not.toMatch(/sEcReT-x|wRoNg-token/)
  })
})

describe('introspection (RFC 7662)', () => {
  test('returns the client, scope and expiry, both over HTTP and in the process', async () => {
    const token = await server.token(agent, { scope: 'agent:read' })
    const answer = await introspect(token)
    expect(answer).toMatchObject({
      active: true,
      client_id: did,
      sub: did,
      scope: 'agent:read',
      exp: expect.any(Number),
    })
    expect(answer).not.toHaveProperty('aud')
    expect(await server.provider.introspect(token)).toEqual({
      active: true,
      client_id: did,
      sub: did,
      scope: 'agent:read',
      exp: answer['exp'],
      token_type: 'Bearer',
    })
  })

  test('returns the same response for HTTP Basic and client_secret_post', async () => {
    const live = await server.token(agent)
    const form = { client_id: checker.clientId, client_secret: checker.clientSecret }
    for (const token of [live, 'nope']) {
      const posted = (await server.post('/oauth2/introspect', { token, ...form })).body
      expect(posted).toMatchObject(await introspect(token))
    }
  })

  const faults: [string, [string, string][], number][] = [
    ['no token', [], 400],
    ['an empty token', [['token', '']], 400],
    [
      'two tokens',
      [
        ['token', 'a'],
        ['token', 'b'],
      ],
      400,
    ],
    [
      'a second secret',
      [
        ['token', 'a'],
        ['client_secret', 'x'],
      ],
      400,
    ],
    [
      'a form of 20 KiB',
      [
        ['token', 'a'],
        ['more', 'x'.repeat(20_000)],
      ],
      400,
    ],
  ]
  test.each(faults)('%s is refused', async (_title, form, status) => {
    const answer = await server.post('/oauth2/introspect', form, checker)
    expect(answer).toMatchObject({ status, body: { error: 'invalid_request' } })
  })

  test.each([
    'Basic',
    'Basic !!!',
    'Basic YQ==',
    `Basic ${'A'.repeat(5000)}`,
    'Bearer x',
    'Basic JTow',
    'Basic OjpB',
  ])('the Authorization header %j is refused', async (authorization) => {
    const init = { method: 'POST', headers: { authorization }, body: new URLSearchParams({ token: 'x' }) }
    expect([400, 401]).toContain((await server.fetch('/oauth2/introspect', init)).status)
  })

  test('a changed secret takes effect immediately', async () => {
    const first = await server.provider.ensureClient({
      clientId: 'rotating',
      clientName: 'r',
      scope: 'agent:read',
      introspection: true,
    })
    const token = await server.token(agent)
    expect(await introspect(token, first)).toMatchObject({ active: true })
    const clientSecret = 'another secret of the operator'
    const asked = { clientId: 'rotating', clientName: 'r', scope: 'agent:read', introspection: true }
    const second = await server.provider.ensureClient({ ...asked, clientSecret })
    expect((await server.post('/oauth2/introspect', { token }, first)).status).toBe(401)
    expect(await introspect(token, second)).toMatchObject({ active: true })
    await server.provider.ensureClient({ ...asked, introspection: false })
    expect(await introspect(token, second)).toEqual({ active: false })
  })

  test('a token for a resource names the resource in aud (RFC 8707)', async () => {
    const token = await server.token(agent, { resource: 'https://agents.example/a' })
    expect(await introspect(token)).toMatchObject({ active: true, aud: 'https://agents.example/a' })
    expect(await server.provider.introspect(token)).toMatchObject({ aud: 'https://agents.example/a' })
  })

  const unknown = ['nope', 'x'.repeat(10_000), 'a b', "' OR 1=1 --", 'é']
  test.each(unknown)('an unknown token is inactive without further data: %#', async (token) => {
    expect(await introspect(token)).toEqual({ active: false })
    expect(await server.provider.introspect(token)).toEqual({ active: false })
  })

  test('an unauthenticated request is refused', async () => {
    const token = await server.token(agent)
    expect((await server.post('/oauth2/introspect', { token })).status).toBe(400)
    expect(
      (await server.post('/oauth2/introspect', { token }, { ...checker, clientSecret: 'x' })).status,
    ).toBe(401)
  })

  test('a client without the introspection flag can introspect only its own tokens', async () => {
    const own = await server.token(agent)
    const other = await server.token(checker)
    expect(await introspect(own, agent)).toMatchObject({ active: true })
    expect(await introspect(other, agent)).toEqual({ active: false })
  })

  test('an expired token is inactive, but clients that may introspect receive its exp', async () => {
    const token = await server.token(agent)
    const { exp } = await server.provider.introspect(token)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3_600_000 })
    try {
      expect(await introspect(token)).toEqual({ active: false, exp })
      const form = { token, client_id: checker.clientId, client_secret: checker.clientSecret }
      expect((await server.post('/oauth2/introspect', form)).body).toEqual({ active: false, exp })
      expect(await introspect(token, agent)).toEqual({ active: false })
      expect(await server.provider.introspect(token)).toEqual({ active: false, exp })
      expect(await server.provider.sweep()).toBe(0)
      vi.setSystemTime(Date.now() + 3_601_000)
      expect(await server.provider.sweep()).toBeGreaterThan(0)
      expect(await server.provider.introspect(token)).toEqual({ active: false })
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('revocation (RFC 7009)', () => {
  test('takes effect immediately', async () => {
    const token = await server.token(agent)
    expect((await server.post('/oauth2/revoke', { token }, agent)).status).toBe(200)
    expect(await introspect(token)).toEqual({ active: false })
    expect(await server.provider.introspect(token)).toEqual({ active: false })
  })

  test('has no effect on another client’s token', async () => {
    const token = await server.token(agent)
    await server.post('/oauth2/revoke', { token }, checker)
    expect(await server.provider.introspect(token)).toMatchObject({ active: true })
  })
})

describe('the surrounding server', () => {
  test('an unknown path below the issuer returns 404 as JSON and other routes are unaffected', async () => {
    expect(await server.fetch('/oauth2/nope')).toMatchObject({
      status: 404,
      body: { error: 'invalid_request' },
    })
    expect((await server.fetch('/oauth2/interaction/x/y')).status).toBe(404)
    expect((await server.fetch('/other')).text).toBe('other')
  })

  test('every response contains the request id', async () => {
    const { headers } = await server.fetch('/oauth2/jwks', { headers: { 'x-request-id': 'r-1' } })
    expect(headers.get('x-request-id')).toBe('r-1')
  })

  test('a body over 56 KiB is refused with or without a content-length', async () => {
    const big = 'a'.repeat(60_000)
    expect((await server.post('/oauth2/token', { grant_type: big }, agent)).status).toBe(413)
    const stream = new Blob([`grant_type=${big}`]).stream()
    const init = {
      method: 'POST',
      body: stream,
      duplex: 'half',
      headers: { authorization: basic(agent), 'content-type': 'application/x-www-form-urlencoded' },
    }
    expect((await server.fetch('/oauth2/token', init as RequestInit)).status).toBe(400)
  })

  test('clientMetadata returns the public key', async () => {
    expect(await server.provider.clientMetadata(did)).toEqual({
      clientId: did,
      clientName: 'alice',
      scope: 'agent:read agent:write',
      publicKey,
    })
    expect(await server.provider.clientMetadata('nobody')).toBeUndefined()
  })
})
