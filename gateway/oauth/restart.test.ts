import { chmod, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { unavailable } from '@parley/kit/database/errors'
import { expect, test, vi } from 'vitest'
import { startIdentityProvider, temporaryFolder } from './testing.ts'

const asked = { clientId: 'agent', clientName: 'agent', scope: 'agent:read' }

test('clients, tokens, secrets and the initial access token are unchanged after a restart', async () => {
  await using folder = await temporaryFolder()
  const first = await startIdentityProvider({ dir: folder.dir })
  const credentials = await first.provider.ensureClient(asked)
  const token = await first.token(credentials)
  const revoked = await first.token(credentials)
  await first.post('/oauth2/revoke', { token: revoked }, credentials)
  const initial = await first.provider.initialAccessToken()
  const keys = await first.fetch('/oauth2/jwks')
  const port = Number(new URL(first.origin).port)
  await first[Symbol.asyncDispose]()

  await using second = await startIdentityProvider({ dir: folder.dir, port })
  expect(await second.provider.introspect(token)).toMatchObject({ active: true, client_id: 'agent' })
  expect(await second.provider.introspect(revoked)).toEqual({ active: false })
  expect(await second.provider.ensureClient(asked)).toEqual(credentials)
  expect(await second.token(credentials)).toBeTruthy()
  expect(await second.provider.initialAccessToken()).toBe(initial)
  expect((await second.fetch('/oauth2/jwks')).text).toBe(keys.text)
})

test('the database file contains no tokens', async () => {
  await using folder = await temporaryFolder()
  await using server = await startIdentityProvider({ dir: folder.dir })
  const token = await server.token(await server.provider.ensureClient(asked))
  const { body } = await server.register({ grant_types: ['client_credentials'] })
  using database = new DatabaseSync(server.databaseFile, { readOnly: true })
  const stored = JSON.stringify(database.prepare('SELECT * FROM oauth_entries').all())
  expect(stored).toContain('ClientCredentials')
  expect(stored).not.toContain(token)
  expect(stored).not.toContain(String(body['registration_access_token']))
})

test('the JWKS contains no private key', async () => {
  await using folder = await temporaryFolder()
  await using server = await startIdentityProvider({ dir: folder.dir })
  const { keys } = (await server.fetch('/oauth2/jwks')).body as { keys: Record<string, unknown>[] }
  expect(keys).toHaveLength(1)
  expect(keys[0]).not.toHaveProperty('d')
})

test.each(['oauth-keys.json', 'sign-in-code', 'initial-access-token'])(
  'an invalid %s prevents the start, with a message that does not quote its content',
  async (name) => {
    await using folder = await temporaryFolder()
    const server = await startIdentityProvider({ dir: folder.dir })
    await server[Symbol.asyncDispose]()
    await writeFile(path.join(folder.dir, 'oauth', name), 'oops SEKRET')
    const started = startIdentityProvider({ dir: folder.dir })
    await expect(started).rejects.toThrow(name)
    await expect(started).rejects.not.toThrow('SEKRET')
  },
)

test.each(['oauth-keys.json', 'sign-in-code', 'initial-access-token'])(
  'a file %s that others can read prevents the start with a message that mentions chmod',
  async (name) => {
    await using folder = await temporaryFolder()
    const server = await startIdentityProvider({ dir: folder.dir })
    await server[Symbol.asyncDispose]()
    const file = path.join(folder.dir, 'oauth', name)
    await chmod(file, 0o644)
    await expect(startIdentityProvider({ dir: folder.dir })).rejects.toThrow(`Run "chmod 600 ${file}"`)
    await chmod(file, 0o600)
    await using _again = await startIdentityProvider({ dir: folder.dir })
  },
)

test('the OAuth server writes nothing to the console', async () => {
  const spies = (['log', 'info', 'warn', 'error'] as const).map((name) => vi.spyOn(console, name))
  try {
    await using folder = await temporaryFolder()
    await using server = await startIdentityProvider({ dir: folder.dir })
    const credentials = await server.provider.ensureClient(asked)
    const token = await server.token(credentials, { resource: 'https://a.example' })
    await server.post('/oauth2/introspect', { token }, credentials)
    await server.post('/oauth2/revoke', { token }, credentials)
    await server.fetch('/oauth2/authorize', { headers: { accept: 'text/html' } })
    await server.fetch('/oauth2/token', { method: 'POST', headers: { origin: 'https://a.example' } })
    for (const spy of spies) expect(spy).not.toHaveBeenCalled()
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
})

test('the URLs derive from the issuer and cookies are Secure behind a TLS proxy', async () => {
  await using folder = await temporaryFolder()
  const issuer = 'https://agents.example/auth/oauth2'
  await using server = await startIdentityProvider({ dir: folder.dir, issuer })
  const { body } = await server.fetch('/.well-known/oauth-authorization-server/auth/oauth2')
  expect(body).toMatchObject({ issuer, token_endpoint: `${issuer}/token` })
  const client = await server.provider.ensureClient({ ...asked, redirectUris: ['https://app.example/cb'] })
  const query = new URLSearchParams({
    client_id: client.clientId,
    response_type: 'code',
    scope: 'agent:read',
    code_challenge: 'c'.repeat(43),
    code_challenge_method: 'S256',
  })
  const answer = await server.fetch(`/auth/oauth2/authorize?${query.toString()}`)
  expect(answer.headers.get('location')).toMatch(/^\/auth\/oauth2\/interaction\//)
  const cookies = answer.headers.getSetCookie()
  expect(cookies.length).toBeGreaterThan(0)
  for (const cookie of cookies) expect(cookie).toMatch(/; secure; httponly/i)
})

test('while the store is unavailable, requests receive Retry-After and client errors remain client errors', async () => {
  await using folder = await temporaryFolder()
  await using server = await startIdentityProvider({ dir: folder.dir })
  const credentials = await server.provider.ensureClient(asked)
  const token = await server.token(credentials)
  const form = { grant_type: 'client_credentials', scope: 'agent:read' }
  const ask = () =>
    Promise.all([
      server.post('/oauth2/token', form, credentials),
      server.post('/oauth2/revoke', { token }, credentials),
    ])
  const away = unavailable('The storage does not answer', new Error('secret'))
  const find = vi.spyOn(server.store, 'find').mockRejectedValue(away)
  for (const { status, headers, body, text } of await ask()) {
    expect([status, headers.get('retry-after'), body['error']]).toEqual([503, '5', 'temporarily_unavailable'])
    expect(text).not.toContain('secret')
  }
  find.mockRejectedValue(new Error('broken'))
  for (const { status, headers } of await ask())
    expect([status, headers.get('retry-after')]).toEqual([500, null])
  find.mockRestore()
  for (const { status } of await ask()) expect(status).toBe(200)
})
