import { randomBytes } from 'node:crypto'
import { type FaultyProxy, startFaultyProxy } from '@parley/tools/testing/faulty-proxy'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeDid } from '../did/did.ts'
import { type KeyPair, keyPairFromSeed } from '../did/keys.ts'
import { signRequest } from '../did/signature.ts'
import { Authenticator } from './authenticate.ts'
import { HttpClientKeys } from './client-keys.ts'
import { clientMetadataUrl } from './client-metadata-url.ts'
import { ClientToken } from './client-token.ts'
import { HttpIntrospector } from './introspection.ts'

export interface Credentials {
  clientId: string
  clientSecret: string
}

export interface NewClient {
  clientId: string
  publicKey?: string
  /** The audience for which the client may request tokens. */
  audience: string
}

/** An OAuth 2.0 server with its administrative functions. */
export interface ProviderUnderTest extends AsyncDisposable {
  /** OAUTH_ISSUER, and OAUTH_INTROSPECTION_URL if discovery does not return it. */
  issuer: string
  introspectionUrl: string | undefined
  introspectionEndpoint: string
  tokenUrl: string
  /** Credentials of a server that checks tokens. */
  checker: Credentials
  /** Creates the client or replaces its key. */
  client(client: NewClient): Promise<Credentials>
  revoke(token: string, as: Credentials): Promise<void>
  /** Returns an expired token that belongs to a separate client. */
  expiredToken(): Promise<string>
}

export interface ProviderTraits {
  /** Whether introspection requires client authentication; otherwise access is restricted by the network. */
  authenticatesCheckers: boolean
}

/** Conformance cases for OAuth 2.0 servers (spec/authentication.md#introspection). */
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
    const url = clientMetadataUrl({ ...provider, clientMetadataUrl: undefined }) ?? ''
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
    new Authenticator(introspector, () => [server], { signatures: { clientKeys: keys } }).authenticate(
      { headers: { authorization: `Bearer ${token}`, ...headers }, method: 'POST', url: '/' },
      Buffer.from(body),
    )

  test('introspection returns the client (a DID), the scopes and the expiry', async () => {
    const token = await tokenOf(bob)
    const answer = await introspector.introspect(token)
    expect(answer).toMatchObject({ active: true, client_id: didOf(key), exp: expect.any(Number) })
    expect(answer.scope?.split(' ').sort()).toEqual(['agent:read', 'agent:write'])
    expect((answer.exp ?? 0) * 1000).toBeGreaterThan(Date.now())
    const caller = await authenticate(token)
    expect(caller).toMatchObject({ id: didOf(key), did: didOf(key) })
    expect([...caller.scopes].sort()).toEqual(['agent:read', 'agent:write'])
  })

  test('a token has only the requested scopes that the client is allowed to have', async () => {
    const caller = await authenticate(await tokenOf(bob, { scope: 'agent:read' }))
    expect([...caller.scopes]).toEqual(['agent:read'])
    await expect(tokenOf(bob, { scope: 'agent:admin' })).rejects.toThrow('400')
  })

  test('a token is rejected as soon as it is revoked', async () => {
    const [token, other] = [await tokenOf(bob), await tokenOf(bob)]
    await authenticate(token)
    await provider.revoke(token, bob)
    await expect(authenticate(token)).rejects.toMatchObject({ code: -32010, status: 401 })
    await authenticate(other)
  })

  test('an expired token is rejected', async () => {
    const refused = await authenticate(await provider.expiredToken()).catch((error: unknown) => error)
    expect(refused).toMatchObject({ status: 401, code: expect.toBeOneOf([-32010, -32011]) })
  })

  test('a token with an audience is accepted only by that server, and a token without one by all servers', async () => {
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
  ])('introspection of an unknown token returns only that it is inactive: %#', async (token) => {
    expect(await introspector.introspect(token)).toEqual({ active: false })
  })

  test('introspection with a wrong client secret fails if clients authenticate', async () => {
    const token = await tokenOf(bob)
    for (const wrong of [{ clientSecret: 'wrong' }, { clientId: 'nobody' }, { clientId: 'did:x:y%%' }]) {
      const as = { ...provider.checker, ...wrong }
      await using stranger = new HttpIntrospector({ url: provider.introspectionEndpoint, ...as })
      const answer = await stranger.introspect(token).catch((error: unknown) => error)
      const expected = traits.authenticatesCheckers ? { status: 503, code: -32042 } : { active: true }
      expect(answer).toMatchObject(expected)
    }
  })

  test('a client’s key is read from the discovered metadata URL', async () => {
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
  ])('an unknown client such as %s has no key', async (clientId) => {
    // An id that is not a DID may be rejected as a path, in which case the lookup fails.
    const outcome = await keys.publicKey(clientId).catch(({ status }: { status: number }) => status)
    expect(outcome).toBeOneOf(clientId.includes('/') ? [undefined, 503] : [undefined])
  })

  test('only a request signed with the current key of the client is accepted, and a new key takes effect immediately', async () => {
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
      '%s: 503, requests are suspended after several failures, and it recovers',
      async (fault) => {
        expect(await far.introspect(token)).toMatchObject({ active: true })
        proxy.fault = fault
        const before = proxy.requests
        for (let i = 0; i < 20; i += 1)
          await expect(far.introspect(token)).rejects.toMatchObject({ status: 503, code: -32042 })
        // Five failures open the circuit breaker; a broken connection is retried once. On a slow machine a probe may be sent.
        expect(proxy.requests - before).toBeLessThanOrEqual(12)
        proxy.fault = 'none'
        const again = async () => (await far.introspect(token).catch(() => undefined))?.active
        await expect.poll(again).toBe(true)
      },
    )

    test('64 concurrent checks of one token share requests, and a later check sends a new one', async () => {
      const before = proxy.requests
      const all = await Promise.all(Array.from({ length: 64 }, () => far.introspect(token)))
      expect(all.every(({ active }) => active)).toBe(true)
      expect(proxy.requests - before).toBe(1)
      await far.introspect(token)
      expect(proxy.requests - before).toBe(2)
    })
  })
}
