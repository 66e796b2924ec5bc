import { randomBytes } from 'node:crypto'
import { type FaultyProxy, startFaultyProxy } from '@parley/tools/testing/faulty-proxy'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeDid } from '../did/did.ts'
import { type KeyPair, keyPairFromSeed } from '../did/keys.ts'
import { signRequest } from '../did/signature.ts'
import { Authenticator } from './authenticate.ts'
import { HttpClientKeys } from './client-keys.ts'
import { type ClientMetadataUrl, clientMetadataUrl } from './client-metadata-url.ts'
import { ClientToken } from './client-token.ts'
import { HttpIntrospector } from './introspection.ts'

export interface Credentials {
  clientId: string
  clientSecret: string
}

export interface NewClient {
  clientId: string
  publicKey?: string
  /** The servers that it may ask tokens for. */
  audience: string
}

/** An OAuth 2.0 server, with what only its administrator can do. */
export interface ProviderUnderTest extends AsyncDisposable {
  /** As in the settings: OAUTH_ISSUER, and OAUTH_INTROSPECTION_URL where discovery does not say it. */
  issuer: string
  introspectionUrl: string | undefined
  introspectionEndpoint: string
  tokenUrl: string
  /** Of a server that checks tokens. */
  checker: Credentials
  /** Makes the client, or gives it another key. */
  client(asked: NewClient): Promise<Credentials>
  revoke(token: string, as: Credentials): Promise<void>
  /** A token of a client of its own that has expired. */
  expiredToken(): Promise<string>
}

export interface ProviderTraits {
  /** Whether introspection is for clients that authenticate; otherwise the network alone keeps others away. */
  authenticatesCheckers: boolean
}

/** What Parley requires of every OAuth 2.0 server (spec/authentication.md#introspection). */
export function providerCases(start: () => Promise<ProviderUnderTest>, traits: ProviderTraits): void {
  const here = 'https://agent.example/here'
  let provider: ProviderUnderTest
  let introspector: HttpIntrospector
  let keys: HttpClientKeys
  let key: KeyPair
  let bob: Credentials
  const newKey = () => keyPairFromSeed(randomBytes(32))
  const didOf = ({ publicKey }: KeyPair) => makeDid({ author: 'bob@example.com', name: 'agent', publicKey })

  beforeAll(async () => {
    provider = await start()
    introspector = new HttpIntrospector({ url: provider.introspectionEndpoint, ...provider.checker })
    const url = clientMetadataUrl({ ...provider, clientMetadataUrl: undefined }) as ClientMetadataUrl
    keys = new HttpClientKeys({ url, ...provider.checker })
    key = newKey()
    bob = await provider.client({ clientId: didOf(key), publicKey: key.publicKeyBase58, audience: here })
  }, 60_000)
  afterAll(async () => {
    await introspector?.[Symbol.asyncDispose]()
    await keys?.[Symbol.asyncDispose]()
    await provider?.[Symbol.asyncDispose]()
  })

  const tokenOf = (client: Credentials, more: { scope?: string; resource?: string } = {}) =>
    new ClientToken({
      tokenUrl: provider.tokenUrl,
      scope: 'agent:read agent:write',
      ...client,
      ...more,
    }).get()
  const authenticate = (token: string, server = here, headers: object = {}, body = '') =>
    new Authenticator(introspector, () => [server], { clientKeys: keys }).authenticate(
      { authorization: `Bearer ${token}`, ...headers },
      Buffer.from(body),
    )

  test('a token names its client, a DID with its colons, its scopes and its end', async () => {
    const token = await tokenOf(bob)
    const answer = await introspector.introspect(token)
    expect(answer).toMatchObject({ active: true, client_id: didOf(key), exp: expect.any(Number) })
    expect(answer.scope?.split(' ').sort()).toEqual(['agent:read', 'agent:write'])
    expect((answer.exp ?? 0) * 1000).toBeGreaterThan(Date.now())
    const caller = await authenticate(token)
    expect(caller).toMatchObject({ id: didOf(key), did: didOf(key) })
    expect([...caller.scopes].sort()).toEqual(['agent:read', 'agent:write'])
  })

  test('a token of one scope has no other; what the client may not have is not given', async () => {
    const caller = await authenticate(await tokenOf(bob, { scope: 'agent:read' }))
    expect([...caller.scopes]).toEqual(['agent:read'])
    await expect(tokenOf(bob, { scope: 'agent:admin' })).rejects.toThrow('400')
  })

  test('a token works, is revoked, and is refused at once', async () => {
    const [token, other] = [await tokenOf(bob), await tokenOf(bob)]
    await authenticate(token)
    await provider.revoke(token, bob)
    await expect(authenticate(token)).rejects.toMatchObject({ code: -32010, status: 401 })
    await authenticate(other)
  })

  test('a token that has expired is refused', async () => {
    const refused = await authenticate(await provider.expiredToken()).catch((error: unknown) => error)
    expect(refused).toMatchObject({ status: 401, code: expect.toBeOneOf([-32010, -32011]) })
  })

  test('a token for one server is refused by every other; one without an audience is for all', async () => {
    const bound = await tokenOf(bob, { resource: here })
    expect([(await introspector.introspect(bound)).aud].flat()).toEqual([here])
    expect(await authenticate(bound)).toMatchObject({ id: bob.clientId })
    await expect(authenticate(bound, 'https://other.example')).rejects.toMatchObject({ code: -32010 })
    expect(await authenticate(await tokenOf(bob), 'https://other.example')).toMatchObject({
      id: bob.clientId,
    })
  })

  test.each([
    'nope',
    'a.b.c',
    'ory_at_x.y',
    '~'.repeat(8000),
    "' OR 1=1 --",
    'a b',
    'é\u0000',
    '%00',
    '&token=x',
  ])('an unknown token is inactive, and nothing more is said: %#', async (token) => {
    expect(await introspector.introspect(token)).toEqual({ active: false })
  })

  test('a server that asks with a wrong secret learns nothing, where servers authenticate', async () => {
    const token = await tokenOf(bob)
    for (const wrong of [{ clientSecret: 'wrong' }, { clientId: 'nobody' }, { clientId: 'did:x:y%%' }]) {
      const as = { ...provider.checker, ...wrong }
      await using stranger = new HttpIntrospector({ url: provider.introspectionEndpoint, ...as })
      const answer = await stranger.introspect(token).catch((error: unknown) => error)
      const expected = traits.authenticatesCheckers ? { status: 503, code: -32042 } : { active: true }
      expect(answer).toMatchObject(expected)
    }
  })

  test('the key of a client is read where discovery or the introspection endpoint says', async () => {
    expect(Buffer.from((await keys.publicKey(bob.clientId)) ?? [])).toEqual(Buffer.from(key.publicKey))
    const keyless = await provider.client({ clientId: didOf(newKey()), audience: here })
    expect(await keys.publicKey(keyless.clientId)).toBeUndefined()
  })

  test.each([
    'did:parley:nobody',
    'did:x:a/../b?c#d',
    'did:x:../../health',
    `did:x:${'y'.repeat(400)}`,
    'did:x:%2e%2e',
  ])('a client that is not there has no key: %s', async (clientId) => {
    // One that is no DID may be no path either: then nothing is known, and nobody is let through.
    const found = await keys.publicKey(clientId).catch(({ status }: { status: number }) => status)
    expect(found).toBeOneOf(clientId.includes('/') ? [undefined, 503] : [undefined])
  })

  test('a request that the client signed is taken, that of another key is not; a new key counts at once', async () => {
    const token = await tokenOf(bob)
    const body = '{"grüße": "😀"}'
    const by = (signer: KeyPair) =>
      authenticate(token, here, signRequest({ did: bob.clientId, key: signer, body }), body)
    const next = newKey()
    expect(await by(key)).toMatchObject({ signature: expect.any(Uint8Array) })
    await expect(by(next)).rejects.toMatchObject({ data: { reason: 'crypto_mismatch' } })
    await provider.client({ clientId: bob.clientId, publicKey: next.publicKeyBase58, audience: here })
    expect(await by(next)).toMatchObject({ signature: expect.any(Uint8Array) })
    await expect(by(key)).rejects.toMatchObject({ data: { reason: 'crypto_mismatch' } })
  })

  describe('behind a faulty network', () => {
    let proxy: FaultyProxy
    let far: HttpIntrospector
    let token: string
    beforeAll(async () => {
      proxy = await startFaultyProxy(provider.introspectionEndpoint)
      far = new HttpIntrospector({ url: proxy.url, ...provider.checker, timeoutMs: 500 })
      token = await tokenOf(bob)
    })
    afterAll(async () => {
      await far?.[Symbol.asyncDispose]()
      await proxy?.[Symbol.asyncDispose]()
    })

    test.each(['silence', 'down'] as const)(
      '%s: 503, no further requests after several failures, and well afterwards',
      async (fault) => {
        expect(await far.introspect(token)).toMatchObject({ active: true })
        proxy.fault = fault
        const before = proxy.requests
        for (let i = 0; i < 20; i += 1)
          await expect(far.introspect(token)).rejects.toMatchObject({ status: 503, code: -32042 })
        // Five failures open the circuit breaker; a broken connection is tried twice. A slow machine may let a probe through.
        expect(proxy.requests - before).toBeLessThanOrEqual(12)
        proxy.fault = 'none'
        const again = async () => (await far.introspect(token).catch(() => undefined))?.active
        await expect.poll(again).toBe(true)
      },
    )

    test('64 that ask for one token at the same time are far fewer questions; a later one is a new one', async () => {
      const before = proxy.requests
      const all = await Promise.all(Array.from({ length: 64 }, () => far.introspect(token)))
      expect(all.every(({ active }) => active)).toBe(true)
      expect(proxy.requests - before).toBe(1)
      await far.introspect(token)
      expect(proxy.requests - before).toBe(2)
    })
  })
}
