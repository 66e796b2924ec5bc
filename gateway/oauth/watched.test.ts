import { RequestLimits } from '@parley/kit/http/request-limits'
import { createServer } from '@parley/kit/http/server'
import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { basic, startIdentityProvider, type TestIdentityProvider, temporaryFolder } from './testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider(folder)
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const audited = () =>
  server
    .logged()
    .split('\n')
    .filter((line) => line.includes('"audit":true'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)

const register = (metadata: Record<string, unknown>) =>
  server.register({ redirect_uris: [], response_types: [], grant_types: ['client_credentials'], ...metadata })

test('registrations and refusals are written to the audit log without secrets', async () => {
  const made = await register({ client_name: 'One', scope: 'agent:read' })
  expect(made.status).toBe(201)
  await register({ scope: 'agent:admin' })
  await server.register({}, 'wrong-initial-token')
  expect(audited()).toMatchObject([
    {
      action: 'oauth.register',
      target: made.body['client_id'],
      allowed: true,
      reason: 'agent:read',
      address: '127.0.0.1',
    },
    {
      action: 'oauth.registration_create',
      allowed: false,
      reason: expect.stringContaining('invalid_client_metadata'),
    },
    { action: 'oauth.registration_create', allowed: false, reason: expect.stringContaining('invalid_token') },
  ])
  const secrets = [made.body['client_secret'], made.body['registration_access_token'], 'wrong-initial-token']
  for (const secret of secrets) expect(server.logged()).not.toContain(secret)
})

test('a wrong client secret is written to the audit log', async () => {
  const { clientId } = await server.provider.ensureClient({
    clientId: 'someone',
    clientName: 'Someone',
    scope: 'agent:read',
  })
  await server.post(
    '/oauth2/token',
    { grant_type: 'client_credentials' },
    { clientId, clientSecret: 'guess-1' },
  )
  expect(audited().at(-1)).toMatchObject({ action: 'oauth.grant', allowed: false })
  expect(server.logged()).not.toContain('guess-1')
})

test('only clients that may introspect are exempt from the rate limit', async () => {
  const checker = await server.provider.ensureClient({
    clientId: 'checker',
    clientName: 'Checker',
    scope: 'agent:read',
    introspection: true,
  })
  const limits = new RequestLimits({ perMinute: 3 })
  const log = makeLog({ level: 'silent', name: 'test' })
  const app = createServer({ log, metrics: createMetrics(), limits })
  server.provider.mount(app, { onClientChecked: (credentials, checks) => limits.trust(credentials, checks) })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const ask = async (clientSecret: string) => {
    const authorization = basic({ clientId: checker.clientId, clientSecret })
    const body = new URLSearchParams({ token: 'any' })
    return (await fetch(`${url}/oauth2/introspect`, { method: 'POST', headers: { authorization }, body }))
      .status
  }
  for (let number = 0; number < 20; number += 1) expect(await ask(checker.clientSecret)).toBe(200)
  const guesses = []
  for (let number = 0; number < 4; number += 1) guesses.push(await ask(`guess-${number}`))
  expect(guesses).toEqual([401, 401, 429, 429])
  expect(await ask(checker.clientSecret)).toBe(200)
  // The address has reached its limit. The exemption applies to the credentials and ends with the permission.
  const headers = { authorization: basic(checker) }
  const at = async (path: string) => (await fetch(`${url}${path}`, { headers })).status
  expect([await at('/oauth2/clients/nobody'), await at('/oauth2/jwks'), await at('/other')]).toEqual([
    404, 429, 429,
  ])
  await server.store.destroy('Client', checker.clientId)
  const removed = [await ask(checker.clientSecret), await ask(checker.clientSecret)]
  expect(removed).toEqual([401, 429])
  await app.close()
})

test('the OAuth server’s responses have nosniff headers', async () => {
  const { headers } = await server.fetch('/.well-known/oauth-authorization-server')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  // Some pages of oidc-provider contain inline scripts (`response_mode=form_post`).
  expect(headers.has('content-security-policy')).toBe(false)
})
