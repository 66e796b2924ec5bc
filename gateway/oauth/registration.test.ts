import { makeDid } from '@parley/kit/did/did'
import { signNextKey } from '@parley/kit/did/key-link'
import { type KeyPair, keyPairFromSeed } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import bs58 from 'bs58'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, startIdentityProvider, type TestIdentityProvider, temporaryFolder } from './testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
const publicKey = '4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS'
const machine = { client_name: 'bob', grant_types: ['client_credentials'] }
const native = {
  client_name: 'desk',
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/cb'],
  token_endpoint_auth_method: 'none',
}
let count = 0
const keys = new Map<string, KeyPair>()
const keyOf = (seed: number) => {
  const key = keyPairFromSeed(Buffer.alloc(32, seed))
  keys.set(key.publicKeyBase58, key)
  return key
}
const newKey = () => keyOf(++count)
/** Registers a client and signs the request with the registered key, if available. */
const register = (metadata: Record<string, unknown>, token?: string) =>
  server.register(metadata, token, keys.get(String(metadata['public_key'])))
const didOf = (key: KeyPair) => makeDid({ author: 'bob', name: 'agent', publicKey: key.publicKey })
/** Returns an unused DID with the key from which it derives. */
const newIdentity = (key = newKey()) => ({ client_id: didOf(key), public_key: key.publicKeyBase58 })
const newDid = () => newIdentity().client_id
const didKeyOf = (key: KeyPair) => `did:key:z${bs58.encode(Buffer.from([0xed, 1, ...key.publicKey]))}`
const historyOf = (...keys: KeyPair[]) =>
  keys.map((key, i) => {
    const before = keys[i - 1]
    const next = { publicKeyBase58: key.publicKeyBase58 }
    return before === undefined ? next : { ...next, signature: signNextKey(before, key.publicKeyBase58) }
  })
const credentials = ({ body }: Answer) => ({
  clientId: String(body['client_id']),
  clientSecret: String(body['client_secret']),
})

beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

describe('registration (RFC 7591)', () => {
  test('returns an id, a secret, the default scope and a token to manage the client', async () => {
    const answer = await register(machine)
    expect(answer.status).toBe(201)
    expect(answer.body).toMatchObject({
      client_name: 'bob',
      scope: 'agent:read agent:write',
      client_secret: expect.stringMatching(/^[\w-]{43}$/),
      registration_access_token: expect.any(String),
      client_id: expect.stringMatching(/^\w[\w-]{21}$/),
      registration_client_uri: `${server.origin}/oauth2/register/${String(answer.body['client_id'])}`,
    })
    expect(await server.token(credentials(answer))).toMatch(/^[\w-]{43}$/)
  })

  test('a DID becomes the client id and is registered with its public key', async () => {
    const identity = newIdentity()
    const { client_id: did, public_key } = identity
    const answer = await register({ ...machine, ...identity })
    expect(answer.body).toMatchObject(identity)
    expect(await server.provider.clientMetadata(did)).toMatchObject({ publicKey: public_key })
    expect(await server.provider.introspect(await server.token(credentials(answer)))).toMatchObject({
      active: true,
      client_id: did,
      sub: did,
    })
  })

  test('a DID of 255 characters works at every endpoint', async () => {
    const key = newKey()
    const [author, name] = ['a', 'b'].map((letter) => letter.repeat(103)) as [string, string]
    const did = makeDid({ author, name, publicKey: key.publicKey })
    expect(did).toHaveLength(255)
    const identity = { client_id: did, public_key: key.publicKeyBase58 }
    const { status, body } = await register({ ...machine, ...identity })
    expect(status).toBe(201)
    const headers = { authorization: `Bearer ${String(body['registration_access_token'])}` }
    expect((await server.fetch(String(body['registration_client_uri']), { headers })).body).toMatchObject({
      client_id: did,
    })
  })

  test('a DID that is already registered is refused, even for concurrent registrations', async () => {
    const taken = newIdentity()
    const first = await server.provider.ensureClient({
      clientId: taken.client_id,
      clientName: 'x',
      scope: 'agent:read',
    })
    const refused = await register({ ...machine, ...taken })
    expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_client_metadata' } })
    expect(await server.token(first)).toMatch(/^[\w-]{43}$/)
    const identity = newIdentity()
    const both = await Promise.all([1, 2].map(() => register({ ...machine, ...identity })))
    expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, 400])
  })

  test('a did:key requires its own key, and the DID of a rotated key requires the signed key history', async () => {
    const [first, second] = [newKey(), newKey()]
    const ofKey = { client_id: didKeyOf(first), public_key: first.publicKeyBase58 }
    const rotated = {
      client_id: didOf(first),
      public_key: second.publicKeyBase58,
      key_history: historyOf(first, second),
    }
    for (const identity of [ofKey, rotated]) {
      const answer = await register({ ...machine, ...identity })
      expect([answer.status, answer.body]).toMatchObject([201, identity])
    }
  })

  const [mine, theirs] = [keyOf(201), keyOf(202)]
  const foreign: [string, Record<string, unknown>][] = [
    ['without a key', { client_id: didOf(theirs) }],
    ['with another key', { client_id: didOf(theirs), public_key: mine.publicKeyBase58 }],
    [
      'with another key that the first key did not sign',
      {
        client_id: didOf(theirs),
        public_key: mine.publicKeyBase58,
        key_history: [
          ...historyOf(theirs),
          { publicKeyBase58: mine.publicKeyBase58, signature: signNextKey(mine, mine.publicKeyBase58) },
        ],
      },
    ],
    [
      'with a history that ends in another key',
      { client_id: didOf(theirs), public_key: mine.publicKeyBase58, key_history: historyOf(theirs) },
    ],
    [
      'with an invalid history',
      { client_id: didOf(theirs), public_key: theirs.publicKeyBase58, key_history: 'x' },
    ],
    ['of did:key with another key', { client_id: didKeyOf(theirs), public_key: mine.publicKeyBase58 }],
    ['of did:key without a key', { client_id: didKeyOf(theirs) }],
    ['of did:web', { client_id: 'did:web:example.com', public_key: mine.publicKeyBase58 }],
    ['of another method', { client_id: 'did:example:1', public_key: mine.publicKeyBase58 }],
  ]
  test.each(foreign)('the DID of another client is refused: %s', async (_title, identity) => {
    const answer = await register({ ...machine, ...identity })
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_client_metadata' } })
  })

  test('the server ignores a requested id that is not a DID and generates one', async () => {
    for (const client_id of ['gateway', 'admin', 42, '']) {
      const { status, body } = await register({ ...machine, client_id })
      expect(status).toBe(201)
      expect(body['client_id']).toMatch(/^[\w-]{22}$/)
    }
  })

  test('registration requires the initial access token', async () => {
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(machine),
    }
    const answer = await server.fetch('/oauth2/register', init)
    // A request without a token receives only the status, without an error code (RFC 6750, section 3.1).
    expect(answer.status).toBe(401)
    for (const token of ['wrong', '', 'undefined']) {
      const { status } = await register(machine, token)
      expect([400, 401]).toContain(status)
    }
  })

  const refused: [string, Record<string, unknown>][] = [
    ['the operator scope', { scope: 'agent:read agent:admin' }],
    ['a scope that does not exist', { scope: 'agent:everything' }],
    ['the scope of an OpenID client', { scope: 'openid' }],
    ['a scope that is not a string', { scope: ['agent:admin'] }],
    ['the introspection flag', { introspection: true }],
    ['the managed flag', { managed: true }],
    ['a public key of 31 bytes', { public_key: publicKey.slice(0, -2) }],
    ['a public key in another alphabet', { public_key: 'O'.repeat(44) }],
    ['a huge public key', { public_key: '4'.repeat(10_000) }],
    ['a public key that is not a string', { public_key: { a: 1 } }],
    ['a DID with a space', { client_id: 'did:parley:a b' }],
    ['a DID without an id', { client_id: 'did:parley:' }],
    ['a DID that is too long', { client_id: `did:web:${'a'.repeat(250)}` }],
    ['a DID with markup', { client_id: 'did:web:<script>' }],
    ['a DID with a query', { client_id: 'did:web:a?b' }],
    ['a jwks_uri', { jwks_uri: 'http://169.254.169.254/' }],
    ['a sector_identifier_uri', { sector_identifier_uri: 'https://169.254.169.254/' }],
    ['a name with bidirectional control characters', { client_name: 'good\u202Edab' }],
    ['a name that is too long', { client_name: 'a'.repeat(121) }],
    ['client credentials without a secret', { token_endpoint_auth_method: 'none' }],
    ['a disabled authentication method', { token_endpoint_auth_method: 'private_key_jwt' }],
    [
      'metadata that is too large',
      { contacts: Array.from({ length: 1000 }, (_, i) => `${i}@example.com`.padStart(30, 'a')) },
    ],
  ]
  test.each(refused)('%s is refused', async (_title, metadata) => {
    const answer = await register({ ...machine, ...metadata })
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_client_metadata' } })
  })

  const redirects: [string, number][] = [
    ['https://app.example/cb', 201],
    ['http://127.0.0.1:3000/cb', 201],
    ['http://[::1]/cb', 201],
    ['http://localhost/cb', 201],
    ['http://app.example/cb', 400],
    ['http://127.0.0.1.evil.example/cb', 400],
    ['http://10.0.0.1/cb', 400],
    ['javascript:alert(1)', 400],
    ['myapp://cb', 400],
    ['https://user:pass@app.example/cb', 400],
    ['https://app.example/cb#fragment', 400],
    ['not an address', 400],
  ]
  test.each(redirects)('redirect address %s: %i', async (uri, status) => {
    const answer = await register({ redirect_uris: [uri] })
    expect(answer.status).toBe(status)
    expect(answer.body['error']).toBe(status === 400 ? 'invalid_redirect_uri' : undefined)
  })

  test.each(['[]', '"x"', '{', 'null', '\u0000'])('the body %j is refused', async (body) => {
    const headers = {
      'content-type': 'application/json',
      authorization: `Bearer ${await server.provider.initialAccessToken()}`,
    }
    const answer = await server.fetch('/oauth2/register', { method: 'POST', headers, body })
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } })
  })
})

describe('management (RFC 7592)', () => {
  const manage = (registered: Answer, method: string, change?: Record<string, unknown>, token?: string) => {
    const { registration_client_uri: uri, registration_access_token: own, ...rest } = registered.body
    const { client_secret_expires_at: _1, client_id_issued_at: _2, ...metadata } = rest
    const body = JSON.stringify({ ...metadata, issuer: server.provider.issuer, ...change })
    const key = keys.get(String(change?.['public_key']))
    return server.fetch(String(uri), {
      method,
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${token ?? String(own)}`,
        ...(key && signRequest({ did: String(rest['client_id']), key, body })),
      },
      ...(change === undefined ? {} : { body }),
    })
  }

  test('a client can read and update itself under the same rules', async () => {
    const registered = await register(machine)
    expect((await manage(registered, 'GET')).body).toMatchObject({ client_name: 'bob' })
    expect((await manage(registered, 'PUT', { client_name: 'bobby' })).body).toMatchObject({
      client_name: 'bobby',
    })
    for (const change of [{ scope: 'agent:admin' }, { introspection: true }, { client_id: newDid() }]) {
      expect((await manage(registered, 'PUT', change)).status).toBe(400)
    }
  })

  test('a key can be replaced only by one that it has signed, and cannot be restored', async () => {
    const [first, second, third] = [newKey(), newKey(), newKey()]
    const registered = await register({ ...machine, ...newIdentity(first) })
    const change = async (key: KeyPair | undefined, history?: object) => {
      const change = { public_key: key?.publicKeyBase58, key_history: history }
      return (await manage(registered, 'PUT', change)).status
    }
    expect(await change(second)).toBe(400)
    expect(await change(second, historyOf(second))).toBe(400)
    expect(await change(undefined)).toBe(400)
    expect(await change(second, historyOf(first, second))).toBe(200)
    expect(await change(second, historyOf(first, second))).toBe(200)
    expect(await change(first)).toBe(400)
    expect(await change(third, historyOf(first, third))).toBe(400)
    expect(await change(third, historyOf(first, second, third))).toBe(200)
    expect(await server.provider.clientMetadata(didOf(first))).toMatchObject({
      publicKey: third.publicKeyBase58,
    })
  })

  test('the same rules apply when a client without a DID replaces its key', async () => {
    const [first, second] = [newKey(), newKey()]
    const registered = await register({ ...machine, public_key: first.publicKeyBase58 })
    const public_key = second.publicKeyBase58
    expect((await manage(registered, 'PUT', { public_key })).status).toBe(400)
    const key_history = historyOf(first, second)
    expect((await manage(registered, 'PUT', { public_key, key_history })).status).toBe(200)
  })

  test('removing a client revokes its tokens', async () => {
    const registered = await register(machine)
    const token = await server.token(credentials(registered))
    expect((await manage(registered, 'DELETE')).status).toBe(204)
    expect(await server.provider.introspect(token)).toEqual({ active: false })
    await expect(server.token(credentials(registered))).rejects.toThrow('invalid_client')
  })

  test('another client’s management token is refused', async () => {
    const one = await register(machine)
    const other = await register(native)
    const stolen = String(other.body['registration_access_token'])
    expect((await manage(one, 'GET', undefined, stolen)).status).toBe(401)
  })
})

describe('clients of the gateway', () => {
  const asked = { clientId: 'supervised', clientName: 'agent', scope: 'agent:read agent:write' }

  test('a second call of ensureClient returns the same secret and keeps the tokens', async () => {
    const [first, second] = await Promise.all([asked, asked].map((one) => server.provider.ensureClient(one)))
    expect(second).toEqual(first)
    const token = await server.token(first as never)
    expect(await server.provider.ensureClient({ ...asked, publicKey, clientName: 'renamed' })).toEqual(first)
    expect(await server.provider.introspect(token)).toMatchObject({ active: true })
    expect(await server.provider.clientMetadata('supervised')).toMatchObject({
      publicKey,
      clientName: 'renamed',
    })
  })

  test('reducing the scope of a client revokes its tokens', async () => {
    const credentials = await server.provider.ensureClient(asked)
    const token = await server.token(credentials)
    expect(await server.provider.ensureClient({ ...asked, scope: 'agent:read' })).toEqual(credentials)
    expect(await server.provider.introspect(token)).toEqual({ active: false })
    await expect(server.token(credentials, { scope: 'agent:write' })).rejects.toThrow('invalid_scope')
  })

  test('a configured secret is used, but a short one is refused', async () => {
    const clientSecret = 'a secret of the operator, kept elsewhere'
    expect(await server.provider.ensureClient({ ...asked, clientSecret })).toMatchObject({ clientSecret })
    expect(await server.token({ clientId: asked.clientId, clientSecret })).toBeTruthy()
    await expect(server.provider.ensureClient({ ...asked, clientSecret: 'short' })).rejects.toThrow(
      '16 characters',
    )
  })

  test.each([{ scope: 'agent:all' }, { publicKey: 'x' }, { redirectUris: ['http://app.example'] }])(
    'metadata that is not valid is refused: %j',
    async (change) => {
      await expect(server.provider.ensureClient({ ...asked, clientId: 'bad', ...change })).rejects.toThrow(
        'invalid_',
      )
      expect(await server.provider.clientMetadata('bad')).toBeUndefined()
    },
  )

  test('a client that registered the id earlier loses the id, its tokens and its management token', async () => {
    const identity = newIdentity()
    const did = identity.client_id
    const stranger = await register({ ...machine, ...identity })
    const token = await server.token(credentials(stranger))
    const owner = await server.provider.ensureClient({
      clientId: did,
      clientName: 'ours',
      scope: 'agent:read',
    })
    expect(owner.clientSecret).not.toBe(stranger.body['client_secret'])
    expect(await server.provider.introspect(token)).toEqual({ active: false })
    const headers = { authorization: `Bearer ${String(stranger.body['registration_access_token'])}` }
    expect((await server.fetch(String(stranger.body['registration_client_uri']), { headers })).status).toBe(
      401,
    )
  })
})
