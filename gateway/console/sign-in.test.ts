import { beforeAll, expect, test } from 'vitest'
import { agent, embeddedOAuth, gateway, gatewayForAllTests, operatorClient, restart } from '../testing.ts'
import { addAccount, TestBrowser } from './testing.ts'

gatewayForAllTests(embeddedOAuth)

let adminToken: string
const passwords = new Map<string, string>()
const origin = () => gateway().addresses.public

async function add(name: string, role: 'caller' | 'operator' = 'caller'): Promise<string> {
  const password = await addAccount(origin(), adminToken, { name, role })
  passwords.set(name, password)
  return password
}

const browser = () => new TestBrowser(origin())

async function signedIn(name: string): Promise<TestBrowser> {
  const fresh = browser()
  const { url } = await fresh.signIn(name, passwords.get(name) ?? '')
  expect(new URL(url).pathname).toBe('/console/')
  return fresh
}

const admin = (method: string, path: string, body?: object) =>
  fetch(`${origin()}${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })

beforeAll(async () => {
  adminToken = await (await operatorClient()).token({ scope: 'agent:read agent:write agent:admin' })
  await add('olga', 'operator')
  await add('carl')
})

test('a person signs in by an authorization code and returns to the page', async () => {
  const fresh = browser()
  const start = await fresh.fetch('/console/sign-in?return=/console/tasks%3Fstate=working')
  const authorize = new URL(start.headers.get('location') ?? '')
  expect(authorize.pathname).toBe('/oauth2/authorize')
  expect(authorize.searchParams.get('code_challenge_method')).toBe('S256')
  const { url } = await fresh.open(authorize.href)
  const form = new URLSearchParams({ account: 'Carl', password: (passwords.get('carl') ?? '').toLowerCase() })
  const end = await fresh.open(url, { method: 'POST', body: form })
  expect(end.url).toBe(`${origin()}/console/tasks?state=working`)
  expect(await fresh.session()).toMatchObject({
    name: 'carl',
    role: 'caller',
    client_id: expect.stringMatching(/^console:carl:[0-9a-f]{10}$/),
  })
})

test('the cookie of a session is HttpOnly, SameSite=Strict and for the whole host', async () => {
  const fresh = browser()
  const { url } = await fresh.open('/console/sign-in')
  const form = new URLSearchParams({ account: 'carl', password: passwords.get('carl') ?? '' })
  const answers = [await fresh.fetch(url, { method: 'POST', body: form })]
  for (let at = answers[0]; at?.headers.get('location') !== null && at !== undefined; at = answers.at(-1))
    answers.push(await fresh.fetch(at.headers.get('location') ?? ''))
  const cookies = answers.flatMap((answer) => answer.headers.getSetCookie())
  const session = cookies.find((line) => line.startsWith('parley_console='))
  expect(session).toMatch(/; Max-Age=43200; Path=\/; HttpOnly; SameSite=Strict$/)
})

test.each([
  '//evil.example',
  'https://evil.example/console/',
  '/registry',
  '/console/../oauth2',
  '/consoles',
  '\\\\evil',
])('a sign-in returns to the console and not to %s', async (to) => {
  const fresh = browser()
  const { url } = await fresh.open(`/console/sign-in?return=${encodeURIComponent(to)}`)
  const form = new URLSearchParams({ account: 'carl', password: passwords.get('carl') ?? '' })
  const end = await fresh.open(url, { method: 'POST', body: form })
  expect(end.url).toBe(`${origin()}/console/`)
})

test('a callback in a browser that has not started the sign-in opens no session', async () => {
  const attacker = browser()
  const { url } = await attacker.open('/console/sign-in')
  const form = new URLSearchParams({ account: 'carl', password: passwords.get('carl') ?? '' })
  let answer = await attacker.fetch(url, { method: 'POST', body: form })
  while (!answer.headers.get('location')?.includes('/console/callback'))
    answer = await attacker.fetch(answer.headers.get('location') ?? '')
  const callback = answer.headers.get('location') ?? ''
  const victim = browser()
  await victim.fetch('/console/sign-in')
  expect((await victim.fetch(callback)).status).toBe(400)
  expect((await victim.fetch('/console/session')).status).toBe(401)
  expect((await attacker.fetch(callback)).status).toBe(303)
  // A code is redeemed once.
  expect((await attacker.fetch(callback)).status).toBe(400)
})

test('the token of the authorization code is of no use afterwards', async () => {
  const carl = await signedIn('carl')
  const sessions = await admin('GET', '/operator/sessions')
  expect(await sessions.json()).toMatchObject({
    sessions: expect.arrayContaining([expect.objectContaining({ name: 'carl', address: '127.0.0.1' })]),
  })
  // The cookie is no bearer token.
  const authorization = `Bearer ${carl.cookie('parley_console')}`
  expect((await fetch(`${origin()}/operator/accounts`, { headers: { authorization } })).status).toBe(401)
})

test('a cookie that was planted before the sign-in opens no session', async () => {
  const victim = browser()
  const planted = 'A'.repeat(43)
  victim.setCookie('parley_console', planted)
  await victim.signIn('carl', passwords.get('carl') ?? '')
  expect(victim.cookie('parley_console')).not.toBe(planted)
  const attacker = browser()
  attacker.setCookie('parley_console', planted)
  expect((await attacker.fetch('/console/session')).status).toBe(401)
})

test('two sessions of a person have separate tokens, and the end of one keeps the other', async () => {
  const [one, other] = [await signedIn('carl'), await signedIn('carl')]
  const first = one.cookie('parley_console') ?? ''
  const { csrf } = await one.session()
  expect(csrf).not.toBe((await other.session()).csrf)
  const moved = browser()
  moved.setCookie('parley_console', first)
  // The open session makes the sign-in unnecessary.
  expect((await moved.fetch('/console/sign-in')).headers.get('location')).toBe('/console/')
  await one.fetch('/console/sign-out', { method: 'POST', headers: { 'x-csrf-token': csrf } })
  expect((await moved.fetch('/console/session')).status).toBe(401)
  expect((await other.fetch('/console/session')).status).toBe(200)
})

test('after the sign-out, a copy of the cookie opens nothing', async () => {
  const carl = await signedIn('carl')
  const thief = browser()
  thief.setCookie('parley_console', carl.cookie('parley_console') ?? '')
  const { csrf } = await thief.session()
  const out = await carl.fetch('/console/sign-out', { method: 'POST', headers: { 'x-csrf-token': csrf } })
  expect(out.status).toBe(200)
  expect(carl.cookie('parley_console')).toBeUndefined()
  const headers = { 'x-csrf-token': csrf }
  expect((await thief.fetch('/console/api/registry/agents', { headers })).status).toBe(401)
})

test('a wrong password, an unknown account and a disabled account have the same answer', async () => {
  await add('dora')
  await admin('POST', '/operator/accounts/dora', { disabled: true })
  const attempts = [
    ['carl', 'WRONG'],
    ['no-one', 'WRONG'],
    ['dora', passwords.get('dora') ?? ''],
  ]
  const answers = attempts.map(async ([account = '', password = '']) => {
    const { response } = await browser().signIn(account, password)
    return { status: response.status, text: (await response.text()).replaceAll(account, 'NAME') }
  })
  const [wrong, unknown, disabled] = await Promise.all(answers)
  expect(wrong?.status).toBe(403)
  expect(wrong?.text).toContain('The account or the password is wrong.')
  expect([unknown, disabled]).toEqual([wrong, wrong])
})

test('attempts for one account are limited in all browsers, and its owner can still sign in with a known browser', async () => {
  await add('erin')
  const erin = await signedIn('erin')
  const { csrf } = await erin.session()
  await erin.fetch('/console/sign-out', { method: 'POST', headers: { 'x-csrf-token': csrf } })
  const statuses: number[] = []
  for (let attempt = 0; attempt < 7; attempt += 1)
    statuses.push((await browser().signIn('erin', 'WRONG')).response.status)
  expect(statuses.slice(0, 4)).toEqual([403, 403, 403, 403])
  expect(statuses.slice(5)).toEqual([429, 429])
  const right = await browser().signIn('erin', passwords.get('erin') ?? '')
  expect(right.response.status).toBe(429)
  expect(Number(right.response.headers.get('retry-after'))).toBeGreaterThan(0)
  const { response } = await erin.signIn('erin', passwords.get('erin') ?? '')
  expect(response.status).toBe(200)
  // The known browser of one account is unknown for another.
  expect((await erin.session()).name).toBe('erin')
})

test('a form of another site signs in no one', async () => {
  const fresh = browser()
  const { url } = await fresh.open('/console/sign-in')
  const form = new URLSearchParams({ account: 'carl', password: passwords.get('carl') ?? '' })
  for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.example' }])
    expect((await fresh.fetch(url, { method: 'POST', body: form, headers })).status).toBe(403)
})

test.each([
  ['disabled', () => admin('POST', '/operator/accounts/frank', { disabled: true })],
  ['given another password', () => admin('POST', '/operator/accounts/frank/password')],
  ['removed', () => admin('DELETE', '/operator/accounts/frank')],
])('the sessions of an account end when it is %s', async (_, change) => {
  await admin('DELETE', '/operator/accounts/frank')
  await add('frank')
  const frank = await signedIn('frank')
  expect((await frank.api('/registry/agents')).status).toBe(200)
  const { csrf } = await frank.session()
  expect((await change()).status).toBe(200)
  const after = await frank.fetch('/console/api/registry/agents', { headers: { 'x-csrf-token': csrf } })
  expect(after.status).toBe(401)
  expect(await after.json()).toMatchObject({ error: { message: expect.stringContaining('sign in again') } })
})

test('an account that is removed and added again has another client, and so none of the tasks of its predecessor', async () => {
  await add('ivan')
  const { client_id: first } = await (await signedIn('ivan')).session()
  await admin('DELETE', '/operator/accounts/ivan')
  await add('ivan')
  const { client_id: second } = await (await signedIn('ivan')).session()
  expect(second).toMatch(/^console:ivan:/)
  expect(second).not.toBe(first)
})

test('if the client of an account is revoked, the person can read why, and continue when it is enabled', async () => {
  await add('hank')
  const hank = await signedIn('hank')
  expect((await hank.api('/registry/agents')).status).toBe(200)
  const { client_id: id } = await hank.session()
  await admin('POST', '/clients/revoke', { id })
  const refused = await hank.api('/registry/agents')
  expect(refused.status).toBe(403)
  expect(await refused.text()).toContain('npx parley clients enable')
  await admin('POST', '/clients/enable', { id })
  expect((await hank.api('/registry/agents')).status).toBe(200)
})

test('a session can be revoked by its id', async () => {
  const carl = await signedIn('carl')
  const olga = await signedIn('olga')
  const { sessions } = (await (await olga.api('/operator/sessions')).json()) as {
    sessions: { id: string; name: string; current: boolean }[]
  }
  expect(sessions.filter(({ current }) => current).map(({ name }) => name)).toEqual(['olga'])
  for (const { id } of sessions.filter(({ name }) => name === 'carl'))
    expect((await olga.api(`/operator/sessions/${id}`, { method: 'DELETE' })).status).toBe(200)
  expect((await carl.fetch('/console/session')).status).toBe(401)
  expect((await olga.api('/operator/sessions/none', { method: 'DELETE' })).status).toBe(404)
})

test('an operator cannot remove or disable the own account', async () => {
  const olga = await signedIn('olga')
  const json = { 'content-type': 'application/json' }
  const disable = { method: 'POST', headers: json, body: '{"disabled":true}' }
  expect((await olga.api('/operator/accounts/olga', disable)).status).toBe(409)
  expect((await olga.api('/operator/accounts/olga', { method: 'DELETE' })).status).toBe(409)
})

test('a caller may bind an account to an existing client, and an operator may not', async () => {
  await agent('poet', 'Writes poems')
  await expect(
    addAccount(origin(), adminToken, { name: 'gina', role: 'caller', client_id: 'no-one' }),
  ).rejects.toThrow('Client not found')
  await expect(
    addAccount(origin(), adminToken, { name: 'gina', role: 'operator', client_id: 'dev-client' }),
  ).rejects.toThrow('An operator has a client')
  const bound = { name: 'gina', role: 'caller', client_id: 'operator' } as const
  const gina = browser()
  await gina.signIn('gina', await addAccount(origin(), adminToken, bound))
  expect(await gina.session()).toMatchObject({ role: 'caller', client_id: 'operator' })
  // The scope of an operator's client is of no use to a caller.
  expect((await gina.api('/operator/accounts')).status).toBe(403)
})

test('sessions and accounts survive a restart of the gateway', async () => {
  const carl = await signedIn('carl')
  const { port } = new URL(origin())
  await restart({ ...embeddedOAuth, PORT: port })
  expect((await carl.fetch('/console/session')).status).toBe(200)
  expect((await carl.api('/registry/agents')).status).toBe(200)
})
