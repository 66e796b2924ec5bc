import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { unavailable } from '@parley/kit/database/errors'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Answer,
  Browser,
  s256,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from '../testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let code: string
let clientId: string
const verifier = 'v'.repeat(43)
const redirectUri = 'http://127.0.0.1:9/cb'
const native = {
  client_name: '<b>"Desk"</b> & friends',
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/cb'],
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token'],
}

beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
  code = (await readFile(path.join(folder.dir, 'oauth/sign-in-code'), 'utf8')).trim()
  clientId = String((await server.register(native)).body['client_id'])
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const request = (change: Record<string, string> = {}) => {
  const parameters = {
    client_id: clientId,
    response_type: 'code',
    redirect_uri: redirectUri,
    scope: 'agent:read',
    state: 's',
    code_challenge: s256(verifier),
    code_challenge_method: 'S256',
    ...change,
  }
  const given = Object.entries(parameters).filter(([, value]) => value !== '')
  return `/oauth2/authorize?${new URLSearchParams(given).toString()}`
}
const location = (answer: Answer) => answer.headers.get('location') ?? ''

async function openPage(change: Record<string, string> = {}) {
  const browser = new Browser(server)
  const page = location(await browser.go(request(change)))
  return { browser, page }
}

/** Follows redirects until one leads to the application. */
async function authorize(change: Record<string, string> = {}): Promise<URL> {
  const { browser, page } = await openPage(change)
  const approved = await browser.go(page, { decision: 'approve', code })
  expect(approved.status).toBe(303)
  return new URL(location(await browser.go(location(approved))))
}

const redeem = (authorizationCode: string, change: Record<string, string> = {}) =>
  server.post('/oauth2/token', {
    grant_type: 'authorization_code',
    client_id: clientId,
    code: authorizationCode,
    redirect_uri: redirectUri,
    code_verifier: verifier,
    ...change,
  })
const refresh = (token: string) =>
  server.post('/oauth2/token', { grant_type: 'refresh_token', client_id: clientId, refresh_token: token })

describe('authorization code with PKCE', () => {
  test('the page responds with 503 while the store is unavailable and works again afterwards', async () => {
    const { browser, page } = await openPage()
    const away = unavailable('The storage does not answer', new Error('secret'))
    const find = vi.spyOn(server.store, 'find').mockRejectedValue(away)
    for (const form of [undefined, { decision: 'approve', code }]) {
      const { status, headers, text } = await browser.go(page, form)
      expect([status, headers.get('retry-after')]).toEqual([503, '5'])
      expect(text).toContain('temporarily unavailable')
    }
    find.mockRestore()
    expect((await browser.go(page)).status).toBe(200)
  })

  test('a person approves with the sign-in code and the application gets tokens for the operator', async () => {
    const back = await authorize()
    expect(back.origin + back.pathname).toBe(redirectUri)
    expect(back.searchParams.get('state')).toBe('s')
    expect(back.searchParams.get('iss')).toBe(`${server.origin}/oauth2`)
    const { body } = await redeem(back.searchParams.get('code') ?? '')
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 3600, scope: 'agent:read' })
    expect(body).not.toHaveProperty('id_token')
    expect(await server.provider.introspect(String(body['access_token']))).toMatchObject({
      active: true,
      client_id: clientId,
      sub: 'operator',
      scope: 'agent:read',
    })
  })

  test('a token for a resource contains aud', async () => {
    const back = await authorize({ resource: 'https://agents.example/a' })
    const { body } = await redeem(back.searchParams.get('code') ?? '')
    expect(await server.provider.introspect(String(body['access_token']))).toMatchObject({
      aud: 'https://agents.example/a',
      scope: 'agent:read',
    })
  })

  test('the approval page shows the client’s scope if the request has none', async () => {
    const back = await authorize({ scope: '' })
    const { body } = await redeem(back.searchParams.get('code') ?? '')
    expect(body['scope']).toBe('agent:read agent:write')
  })

  test('agent:admin can be approved for a managed client', async () => {
    const { clientId, clientSecret } = await server.provider.ensureClient({
      clientId: 'console',
      clientName: 'console',
      scope: 'agent:read agent:admin',
      redirectUris: ['http://127.0.0.1/cb'],
    })
    const back = await authorize({ client_id: clientId, scope: 'agent:admin' })
    const form = { client_id: clientId, client_secret: clientSecret }
    const { body } = await redeem(back.searchParams.get('code') ?? '', form)
    expect(body['scope']).toBe('agent:admin')
  })

  const refused: [string, Record<string, string>, string][] = [
    ['no PKCE', { code_challenge: '', code_challenge_method: '' }, 'invalid_request'],
    ['PKCE without hash', { code_challenge: verifier, code_challenge_method: 'plain' }, 'invalid_request'],
    ['a scope that the client does not have', { scope: 'agent:execute' }, 'invalid_scope'],
    ['the operator scope', { scope: 'agent:admin' }, 'invalid_scope'],
    ['an OpenID scope', { scope: 'openid' }, 'invalid_scope'],
    ['the implicit grant', { response_type: 'token' }, 'unsupported_response_type'],
    ['response_mode without a page', { prompt: 'none' }, 'login_required'],
  ]
  test.each(refused)('%s is refused', async (_title, change, error) => {
    const back = new URL(location(await new Browser(server).go(request(change))))
    expect(new URLSearchParams(back.search || back.hash.slice(1)).get('error')).toBe(error)
  })

  test.each([
    { redirect_uri: 'https://evil.example/cb' },
    { redirect_uri: 'http://127.0.0.1:9/other' },
    { client_id: 'nobody' },
  ])('a request with an unregistered redirect address is refused: %j', async (change) => {
    const answer = await new Browser(server).go(request(change))
    expect(answer.status).toBe(400)
    expect(location(answer)).toBe('')
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
  })

  const wrong: [string, Record<string, string>][] = [
    ['no verifier', { code_verifier: '' }],
    ['a wrong verifier', { code_verifier: 'w'.repeat(43) }],
    ['another redirect address', { redirect_uri: 'http://127.0.0.1:10/cb' }],
  ]
  test.each(wrong)('a code with %s is refused', async (_title, change) => {
    const authorizationCode = (await authorize()).searchParams.get('code') ?? ''
    const answer = await redeem(authorizationCode, change)
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
  })

  test('a code issued to another client is refused', async () => {
    const authorizationCode = (await authorize()).searchParams.get('code') ?? ''
    const other = String((await server.register(native)).body['client_id'])
    expect((await redeem(authorizationCode, { client_id: other })).body['error']).toBe('invalid_grant')
  })

  test('a token is inactive after its grant is revoked', async () => {
    const back = await authorize()
    const { body } = await redeem(back.searchParams.get('code') ?? '')
    const token = String(body['access_token'])
    using database = new DatabaseSync(server.databaseFile, { readOnly: true })
    const grants = database.prepare("SELECT id FROM oauth_entries WHERE model = 'Grant'").all()
    for (const { id } of grants) await server.store.destroy('Grant', String(id))
    expect(await server.provider.introspect(token)).toEqual({ active: false })
  })

  test('a reused code is refused and its tokens are revoked', async () => {
    const authorizationCode = (await authorize()).searchParams.get('code') ?? ''
    const first = await redeem(authorizationCode)
    expect((await redeem(authorizationCode)).body['error']).toBe('invalid_grant')
    expect(await server.provider.introspect(String(first.body['access_token']))).toEqual({ active: false })
    expect((await refresh(String(first.body['refresh_token']))).body['error']).toBe('invalid_grant')
  })

  test('at most one of many concurrent uses of a code succeeds, and the token that it gets is revoked', async () => {
    const authorizationCode = (await authorize()).searchParams.get('code') ?? ''
    const answers = await Promise.all(Array.from({ length: 8 }, () => redeem(authorizationCode)))
    const served = answers.filter(({ status }) => status === 200)
    expect(served.length).toBeLessThanOrEqual(1)
    for (const { body } of served) {
      expect(await server.provider.introspect(String(body['access_token']))).toEqual({ active: false })
    }
  })
})

describe('refresh token', () => {
  const tokens = async () => (await redeem((await authorize()).searchParams.get('code') ?? '')).body

  test('can be used only once, and reuse revokes the whole grant', async () => {
    const first = await tokens()
    const second = (await refresh(String(first['refresh_token']))).body
    expect(second['refresh_token']).not.toBe(first['refresh_token'])
    expect(await server.provider.introspect(String(second['access_token']))).toMatchObject({ active: true })
    expect((await refresh(String(first['refresh_token']))).body['error']).toBe('invalid_grant')
    expect(await server.provider.introspect(String(second['access_token']))).toEqual({ active: false })
  })

  test('is not accepted as an access token by introspection', async () => {
    const checker = await server.provider.ensureClient({
      clientId: 'checker',
      clientName: 'c',
      scope: 'agent:read',
      introspection: true,
    })
    const token = String((await tokens())['refresh_token'])
    expect(await server.provider.introspect(token)).toEqual({ active: false })
    expect((await server.post('/oauth2/introspect', { token }, checker)).body).toEqual({ active: false })
  })

  test('revokes the access token when it is revoked', async () => {
    const { access_token, refresh_token } = await tokens()
    const form = { token: String(refresh_token), client_id: clientId }
    expect((await server.post('/oauth2/revoke', form)).status).toBe(200)
    expect(await server.provider.introspect(String(access_token))).toEqual({ active: false })
  })

  test('a public client cannot introspect', async () => {
    const { access_token } = await tokens()
    const form = { token: String(access_token), client_id: clientId }
    expect((await server.post('/oauth2/introspect', form)).body).toEqual({ active: false })
  })
})

describe('the approval page', () => {
  test('shows the escaped client name and scopes, contains no scripts and cannot be framed', async () => {
    const { browser, page } = await openPage({ scope: 'agent:read agent:write' })
    const { status, text, headers } = await browser.go(page)
    expect(status).toBe(200)
    expect(text).toContain('&#60;b&#62;&#34;Desk&#34;&#60;/b&#62; &#38; friends')
    expect(text).not.toContain('<b>')
    expect(text).toContain('agent:write')
    expect(text).toContain('127.0.0.1:9')
    expect(text).not.toMatch(/<script|\son\w+=/i)
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).toContain("form-action 'self' http://127.0.0.1:9;")
    expect(policy).not.toContain('script')
    expect(headers.get('cache-control')).toBe('no-store')
  })

  test.each(['http://127.0.0.1/cb', 'https://app.example/cb'])(
    'is shown for each authorization by the application at %s, even in the same browser',
    async (redirect_uri) => {
      const { clientId } = await server.provider.ensureClient({
        clientId: redirect_uri,
        clientName: 'again',
        scope: 'agent:read',
        redirectUris: [redirect_uri],
      })
      const change = { client_id: clientId, redirect_uri }
      const { browser, page } = await openPage(change)
      const approved = await browser.go(page, { decision: 'approve', code })
      expect(location(await browser.go(location(approved)))).toContain('code=')
      expect(location(await browser.go(request(change)))).toContain('/oauth2/interaction/')
    },
  )

  test('returns access_denied if the person refuses', async () => {
    const { browser, page } = await openPage()
    const refused = await browser.go(page, { decision: 'refuse' })
    const back = new URL(location(await browser.go(location(refused))))
    expect(back.searchParams.get('error')).toBe('access_denied')
  })

  test('is not shown without the cookie of the requesting browser', async () => {
    const { page } = await openPage()
    const answer = await new Browser(server).go(page, { decision: 'approve', code })
    expect(answer.status).toBe(400)
    expect(answer.headers.get('content-type')).toContain('text/html')
  })

  test('does not approve a request other than its own', async () => {
    const asked = await new Browser(server).go(request())
    const cookie = asked.headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ')
    const post = (page: string) =>
      server.fetch(page, {
        method: 'POST',
        headers: { cookie },
        body: new URLSearchParams({ decision: 'approve', code }),
      })
    expect((await post((await openPage()).page)).status).toBe(400)
    expect((await post(location(asked))).status).toBe(303)
  })

  test.each([
    ['nothing', {}, 400],
    ['an invalid decision', { decision: 'maybe', code: 'x' }, 400],
    ['a very long code', { decision: 'approve', code: 'x'.repeat(5000) }, 413],
  ] as [string, Record<string, string>, number][])('%s posted: %#', async (_title, form, status) => {
    const { browser, page } = await openPage()
    expect((await browser.go(page, form)).status).toBe(status)
  })

  test('is blocked temporarily after too many wrong codes, while another page still works', async () => {
    const own = await temporaryFolder()
    await using _own = own
    await using closed = await startIdentityProvider({ dir: own.dir })
    const open = server
    server = closed
    try {
      const { body } = await closed.register(native)
      const { browser, page } = await openPage({ client_id: String(body['client_id']) })
      for (let wrong = 1; wrong < 5; wrong++) {
        expect((await browser.go(page, { decision: 'approve', code: 'wrong' })).status).toBe(403)
      }
      expect((await browser.go(page, { decision: 'approve', code: 'wrong' })).status).toBe(429)
      const right = (await readFile(path.join(own.dir, 'oauth/sign-in-code'), 'utf8')).trim()
      const answer = await browser.go(page, { decision: 'approve', code: right })
      expect(answer.status).toBe(429)
      expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
      expect(answer.text).toContain('start again from the application')
      const owner = await openPage({ client_id: String(body['client_id']) })
      const accepted = await owner.browser.go(owner.page, { decision: 'approve', code: right })
      expect(accepted.status).toBe(303)
      expect(accepted.headers.getSetCookie().find((cookie) => cookie.startsWith('parley_device='))).toMatch(
        /^parley_device=[\w-]{43}; Path=\/oauth2\/interaction; Max-Age=7776000; HttpOnly; SameSite=Strict$/,
      )
      expect(closed.logged()).not.toContain(right)
    } finally {
      server = open
    }
  })

  test('secret files can be read only by their owner', async () => {
    for (const name of ['sign-in-code', 'initial-access-token', 'oauth-keys.json']) {
      expect((await stat(path.join(folder.dir, 'oauth', name))).mode & 0o777).toBe(0o600)
    }
    expect(code).toMatch(/^([0-9A-Z]{5}-){3}[0-9A-Z]{5}$/)
  })
})
