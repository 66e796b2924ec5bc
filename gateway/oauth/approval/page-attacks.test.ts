import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
let form: { decision: string; code: string }
let clientId: string

beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
  const code = (await readFile(path.join(folder.dir, 'oauth/sign-in-code'), 'utf8')).trim()
  form = { decision: 'approve', code }
  const { body } = await server.register({
    client_name: 'Host',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/cb', 'http://[::1]/cb', 'http://localhost/cb'],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
  })
  clientId = String(body['client_id'])
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const location = (answer: Answer) => answer.headers.get('location') ?? ''

async function open(change: Record<string, string> = {}) {
  const browser = new Browser(server)
  const parameters = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: 'http://127.0.0.1:9/cb',
    scope: 'agent:read',
    code_challenge: s256('v'.repeat(43)),
    code_challenge_method: 'S256',
    ...change,
  })
  return { browser, page: location(await browser.go(`/oauth2/authorize?${parameters.toString()}`)) }
}

test.each<[string, Record<string, string>]>([
  ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
  ['another site that hides its origin', { 'sec-fetch-site': 'cross-site', origin: 'null' }],
  ['another host of the same site', { 'sec-fetch-site': 'same-site' }],
  ['another origin in a browser without fetch metadata', { origin: 'https://evil.example' }],
])('a form that was posted by %s is refused, and the code is not counted', async (_title, headers) => {
  const { browser, page } = await open()
  const answer = await browser.go(page, form, headers)
  expect([answer.status, location(answer)]).toEqual([403, ''])
  expect((await browser.go(page, form)).status).toBe(303)
})

test.each<[string, Record<string, string>]>([
  ['fetch metadata', { 'sec-fetch-site': 'same-origin', origin: 'null' }],
  ['an origin that the referrer policy hides', { origin: 'null' }],
  ['no such headers', {}],
])('the form of the page itself is accepted with %s', async (_title, headers) => {
  const { browser, page } = await open()
  expect((await browser.go(page, form, headers)).status).toBe(303)
})

test('an approval cannot be repeated after the application has its code', async () => {
  const { browser, page } = await open()
  const approved = await browser.go(page, form)
  const back = await browser.go(location(approved))
  expect(location(back)).toContain('code=')
  expect((await browser.go(page, form)).status).toBe(400)
  expect((await browser.go(location(approved))).status).toBe(400)
})

test('an approval in one browser cannot be continued in another', async () => {
  const { browser, page } = await open()
  const approved = await browser.go(page, form)
  expect((await new Browser(server).go(location(approved))).status).toBe(400)
})

test('a refusal ends the request, which cannot be approved afterwards', async () => {
  const { browser, page } = await open()
  const refused = await browser.go(page, { decision: 'refuse' })
  expect(location(await browser.go(location(refused)))).toContain('error=access_denied')
  expect((await browser.go(page, form)).status).toBe(400)
})

test('cookies of the page are not sent by other sites and cannot be read by scripts', async () => {
  const answer = await new Browser(server).go((await open()).page)
  expect(answer.status).toBe(400)
  const parameters = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: 'http://127.0.0.1:9/cb',
    scope: 'agent:read',
    code_challenge: s256('v'.repeat(43)),
    code_challenge_method: 'S256',
  })
  const { headers } = await server.fetch(`/oauth2/authorize?${parameters.toString()}`)
  const cookies = headers.getSetCookie()
  expect(cookies.length).toBeGreaterThan(0)
  for (const cookie of cookies) expect(cookie).toMatch(/; samesite=lax; httponly/i)
})

type Opened = Awaited<ReturnType<typeof open>>

test.each<[string, (opened: Opened) => Promise<Answer>]>([
  ['the form', ({ browser, page }) => browser.go(page)],
  ['a wrong code', ({ browser, page }) => browser.go(page, { decision: 'approve', code: 'wrong' })],
  ['an error', ({ page }) => new Browser(server).go(page)],
])('%s is never shown in a frame', async (_title, answer) => {
  const { headers } = await answer(await open())
  expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  expect(headers.get('x-frame-options')).toBe('DENY')
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('referrer-policy')).toBe('no-referrer')
})

test.each(['http://127.0.0.1:50000/cb', 'http://[::1]:50000/cb', 'http://localhost:50000/cb'])(
  'a native application may use any port of a loopback address: %s',
  async (redirect_uri) => {
    const { browser, page } = await open({ redirect_uri })
    const back = new URL(location(await browser.go(location(await browser.go(page, form)))))
    expect(back.href.startsWith(`${redirect_uri}?`)).toBe(true)
    expect(back.searchParams.get('iss')).toBe(`${server.origin}/oauth2`)
  },
)

test('a code for one resource gives no token for another', async () => {
  const { browser, page } = await open({ resource: `${server.origin}/mcp` })
  const back = new URL(location(await browser.go(location(await browser.go(page, form)))))
  const token = (resource: string) =>
    server.post('/oauth2/token', {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: back.searchParams.get('code') ?? '',
      redirect_uri: 'http://127.0.0.1:9/cb',
      code_verifier: 'v'.repeat(43),
      resource,
    })
  expect((await token(`${server.origin}/v1`)).body['error']).toBe('invalid_target')
})
