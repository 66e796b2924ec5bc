import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import {
  type Credentials,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from '../testing.ts'
import { settingsModel } from './client-settings.ts'
import { isKey, keyIdOf, keyModel, newKey } from './long-lived-keys.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let client: Credentials

beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})
beforeEach(async () => {
  client = await newClient()
})

async function newClient(): Promise<Credentials> {
  const { body } = await server.register({
    client_name: 'a program',
    grant_types: ['client_credentials'],
    scope: 'agent:read agent:write',
  })
  return { clientId: String(body['client_id']), clientSecret: String(body['client_secret']) }
}

const inDays = (days: number) => Math.floor(Date.now() / 1000) + days * 86_400
const introspect = (token: string) => server.provider.introspect(token)
const clients = () => server.provider.clients
const request = (form: Record<string, string> = {}) =>
  server.post('/oauth2/token', { grant_type: 'client_credentials', ...form }, client)

async function newKeyOf(more: object = {}) {
  const options = {
    clientId: client.clientId,
    name: 'nightly report',
    scope: 'agent:read',
    exp: inDays(90),
    ...more,
  }
  const created = await server.provider.keys.create(options)
  if (created === undefined) throw new Error('too many keys')
  return created
}

test('a limited scope applies to tokens that exist already, and to the next ones', async () => {
  const token = await server.token(client)
  await clients().limit(client.clientId, { scope: 'agent:read' })
  expect(await introspect(token)).toMatchObject({ active: true, scope: 'agent:read' })
  const { body } = await request()
  expect(body['scope']).toBe('agent:read')
  expect((await request({ scope: 'agent:write' })).body['error']).toBe('invalid_scope')
  await clients().limit(client.clientId, {})
  expect(await introspect(token)).toMatchObject({ scope: 'agent:read agent:write' })
})

test('a limit never widens the scope of a client', async () => {
  await clients().limit(client.clientId, { scope: 'agent:read agent:admin' })
  expect((await request({ scope: 'agent:admin' })).body['error']).toBe('invalid_scope')
  expect(await introspect(await server.token(client))).toMatchObject({ scope: 'agent:read' })
})

test('a client limited to resources gets tokens for these only, and its other tokens are inactive', async () => {
  const token = await server.token(client)
  await clients().limit(client.clientId, { resources: ['https://one.example'] })
  expect(await introspect(token)).toEqual({ active: false })
  expect((await request()).body['error']).toBe('invalid_target')
  expect((await request({ resource: 'https://two.example' })).body['error']).toBe('invalid_target')
  const bound = await server.token(client, { resource: 'https://one.example' })
  expect(await introspect(bound)).toMatchObject({ active: true, aud: 'https://one.example' })
})

test('a client has no tokens after its expiry, and its tokens end with it', async () => {
  const token = await server.token(client)
  const soon = Math.floor(Date.now() / 1000) + 60
  await clients().limit(client.clientId, { expiresAt: soon })
  expect(await introspect(token)).toMatchObject({ active: true, exp: soon })
  await clients().limit(client.clientId, { expiresAt: soon - 120 })
  expect(await introspect(token)).toEqual({ active: false })
  expect((await request()).status).toBe(401)
})

test('the rate limit of a client is part of introspection, and its tags are kept once each', async () => {
  await clients().limit(client.clientId, { requestsPerMinute: 30 })
  await clients().tag(client.clientId, ['trusted', 'eu', 'eu'])
  expect(await introspect(await server.token(client))).toMatchObject({ requests_per_minute: 30 })
  expect((await clients().find(client.clientId))?.settings.tags).toEqual(['trusted', 'eu'])
})

test('a revoked client gets no tokens, and its tokens, keys and registration access are refused', async () => {
  const [token, { key }] = [await server.token(client), await newKeyOf()]
  expect(await clients().revoke(client.clientId)).toMatchObject({ settings: { disabled: true } })
  expect(await introspect(token)).toEqual({ active: false })
  expect(await introspect(key)).toEqual({ active: false })
  expect((await request()).body['error']).toBe('invalid_client')
  expect(await server.provider.clientMetadata(client.clientId)).toBeUndefined()
  await clients().enable(client.clientId)
  expect(await introspect(token)).toEqual({ active: false })
  expect(await introspect(key)).toEqual({ active: false })
  expect((await request()).status).toBe(200)
})

test('a token that is stored while its client is being revoked is inactive', async () => {
  const token = await server.token(client)
  const payload = { disabled: true }
  await server.store.upsert({ model: settingsModel, id: client.clientId, payload })
  expect(await introspect(token)).toEqual({ active: false })
})

test('the settings of a client that registers again are kept, unless an operator removes the client', async () => {
  const key = { clientId: client.clientId, clientSecret: client.clientSecret }
  await clients().tag(client.clientId, ['trusted'])
  const found = await server.store.find('Client', client.clientId)
  await server.store.destroy('Client', client.clientId)
  await server.store.insert({ model: 'Client', id: client.clientId, payload: found ?? {} })
  expect(await introspect(await server.token(key))).toMatchObject({ active: true })
  expect((await clients().find(client.clientId))?.settings).toEqual({ tags: ['trusted'] })
  expect(await clients().remove(client.clientId)).toBe(true)
  expect(await clients().find(client.clientId)).toBeUndefined()
  expect(await server.store.find(settingsModel, client.clientId)).toBeUndefined()
  expect((await request()).status).toBe(401)
})

test('settings that this version cannot read make every use of the client fail', async () => {
  const token = await server.token(client)
  await server.store.upsert({ model: settingsModel, id: client.clientId, payload: { scope: 5 } })
  await expect(introspect(token)).rejects.toThrow('expected string')
  await server.store.destroy(settingsModel, client.clientId)
})

test('clients are listed in pages, without secrets, with the time of the last token and use', async () => {
  await introspect(await server.token(client))
  await vi.waitFor(async () =>
    expect(await clients().find(client.clientId)).toMatchObject({
      name: 'a program',
      managed: false,
      createdAt: expect.any(Number),
      lastTokenAt: expect.any(Number),
      lastUsedAt: expect.any(Number),
      settings: {},
    }),
  )
  const seen: string[] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await clients().list({ after, limit: 2 })
    expect(JSON.stringify(page)).not.toContain('secret')
    seen.push(...page.clients.map(({ id }) => id))
    after = page.hasMore ? page.clients.at(-1)?.id : undefined
  }
  expect(seen).toEqual([...new Set(seen)].toSorted((a, b) => (a < b ? -1 : 1)))
  expect(seen).toContain(client.clientId)
  const found = await clients().list({ limit: 10, words: client.clientId })
  expect(found.clients).toHaveLength(1)
})

test('a change of an unknown client changes nothing', async () => {
  expect(await clients().tag('unknown', ['a'])).toBeUndefined()
  expect(await clients().remove('unknown')).toBe(false)
  expect(await server.store.find(settingsModel, 'unknown')).toBeUndefined()
})

test('concurrent changes of one client are all kept', async () => {
  const { clientId } = client
  await Promise.all([
    clients().tag(clientId, ['a']),
    clients().limit(clientId, { requestsPerMinute: 5 }),
    clients().revoke(clientId),
  ])
  expect((await clients().find(clientId))?.settings).toEqual({
    tags: ['a'],
    requestsPerMinute: 5,
    disabled: true,
  })
})

test('a long-lived key is an access token of its client, stored as a hash', async () => {
  const { key, record } = await newKeyOf({ aud: 'https://agent.example' })
  expect(key).toMatch(/^plk_[0-9A-Za-z]{49}$/)
  expect(await introspect(key)).toEqual({
    active: true,
    client_id: client.clientId,
    sub: client.clientId,
    scope: 'agent:read',
    aud: 'https://agent.example',
    exp: record.exp,
    token_type: 'Bearer',
  })
  const stored = JSON.stringify(await server.store.find(keyModel, record.id))
  expect(stored).not.toContain(key.slice(4, 20))
  expect(JSON.stringify(await server.provider.keys.list(client.clientId))).not.toContain('hash')
})

test('a key is refused after it was revoked, or has expired, or with any other character', async () => {
  const { key, record } = await newKeyOf()
  for (let at = 0; at < key.length; at += 1) {
    const other = key[at] === 'a' ? 'b' : 'a'
    const wrong = key.slice(0, at) + other + key.slice(at + 1)
    expect(isKey(wrong)).toBe(false)
    expect(await introspect(wrong)).toEqual({ active: false })
  }
  await server.provider.keys.revoke(record.id)
  expect(await introspect(key)).toEqual({ active: false })
  const old = await newKeyOf({ exp: inDays(-1) })
  expect(await introspect(old.key)).toEqual({ active: false, exp: old.record.exp })
  expect(await server.provider.keys.list(client.clientId)).toEqual([])
})

test('a client introspects and revokes its own keys at the OAuth endpoints, and other clients do not', async () => {
  const { key } = await newKeyOf()
  const ask = (path: string, as: Credentials) => server.post(`/oauth2/${path}`, { token: key }, as)
  const other = await newClient()
  expect((await ask('introspect', other)).body).toEqual({ active: false })
  expect((await ask('introspect', client)).body).toMatchObject({ active: true, client_id: client.clientId })
  await ask('revoke', other)
  expect(await introspect(key)).toMatchObject({ active: true })
  expect((await ask('revoke', client)).status).toBe(200)
  expect(await introspect(key)).toEqual({ active: false })
})

test('limits apply to introspection with a client secret in the form, which oidc-provider answers', async () => {
  const token = await server.token(client)
  await clients().limit(client.clientId, { scope: 'agent:read' })
  const ask = async () => {
    const form = { token, client_id: client.clientId, client_secret: client.clientSecret }
    return (await server.post('/oauth2/introspect', form)).body
  }
  expect(await ask()).toMatchObject({ active: true, scope: 'agent:read' })
  await clients().limit(client.clientId, { resources: ['https://one.example'] })
  expect(await ask()).toEqual({ active: false })
})

test('a key with a record that contains another hash is refused', async () => {
  const { record } = await newKeyOf()
  const other = newKey()
  const payload = await server.store.find(keyModel, record.id)
  await server.store.upsert({ model: keyModel, id: keyIdOf(other), payload: payload ?? {} })
  expect(await introspect(other)).toEqual({ active: false })
})

test('a key has the scopes that its client still has', async () => {
  const { key } = await newKeyOf({ scope: 'agent:read agent:write' })
  await clients().limit(client.clientId, { scope: 'agent:read' })
  expect(await introspect(key)).toMatchObject({ scope: 'agent:read' })
})

test('a key is exchanged for a token of one agent, which ends with the key', async () => {
  const { key, record } = await newKeyOf()
  const exchange = () =>
    server.provider.exchanger.exchange({
      subject: key,
      actor: server.origin,
      names: [server.origin],
      resource: 'did:parley:agent',
    })
  const { text } = await exchange()
  const answer = { active: true, client_id: client.clientId, scope: 'agent:read', aud: 'did:parley:agent' }
  expect(await introspect(text)).toMatchObject(answer)
  await server.provider.keys.revoke(record.id)
  expect(await introspect(text)).toEqual({ active: false })
  await expect(exchange()).rejects.toThrow('not active')
})

test('an exchanged token of a revoked client is refused, also for a renewal', async () => {
  const { key } = await newKeyOf()
  const request = { subject: key, actor: server.origin, names: [server.origin], resource: 'did:parley:agent' }
  const { text } = await server.provider.exchanger.exchange(request)
  await server.store.upsert({ model: settingsModel, id: client.clientId, payload: { disabled: true } })
  expect(await introspect(text)).toEqual({ active: false })
})

test('a client has at most 20 keys', async () => {
  const made = await Promise.allSettled(Array.from({ length: 25 }, () => newKeyOf()))
  expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
  await expect(newKeyOf()).rejects.toThrow('too many keys')
})
