import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { startFaultyProxy } from '@parley/tools/testing/faulty-proxy'
import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { keyPairFromSeed } from '../did/keys.ts'
import { signRequest } from '../did/signature.ts'
import { HttpClientKeys } from './client-keys.ts'
import { checkDidSignature } from './did-signature.ts'

const [old, key] = [1, 2].map((value) => keyPairFromSeed(Buffer.alloc(32, value))) as [
  ReturnType<typeof keyPairFromSeed>,
  ReturnType<typeof keyPairFromSeed>,
]
const did = 'did:parley:alice:agent:0f1e2d3c'
const unavailable = { error: 'Unavailable', status: 503, data: { reason: 'oauth' } }
const client = { clientId: 'did:parley:bob', clientSecret: 's: %', timeoutMs: 300 }

let provider: TestIdentityProvider
let keys: HttpClientKeys
beforeEach(async () => {
  provider = await TestIdentityProvider.start()
  provider.clients.set(did, { client_id: did, public_key: key.publicKeyBase58 })
  keys = new HttpClientKeys({ url: `${provider.url}/clients/{client_id}`, ...client })
})
afterEach(async () => {
  await keys[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
})

const bytesOf = (key: Uint8Array | undefined) => (key === undefined ? undefined : Buffer.from(key))

test('the key of a client is cached for a minute unless a fresh one is requested', async () => {
  expect(bytesOf(await keys.publicKey(did))).toEqual(Buffer.from(key.publicKey))
  await keys.publicKey(did)
  expect(provider.metadataRequests).toBe(1)
  await keys.publicKey(did, true)
  expect(provider.metadataRequests).toBe(2)
})

test('an expired cache entry is fetched again', async () => {
  await using forgetful = new HttpClientKeys({
    url: `${provider.url}/clients/{client_id}`,
    ...client,
    cacheMs: 0,
  })
  await forgetful.publicKey(did)
  await forgetful.publicKey(did)
  expect(provider.metadataRequests).toBe(2)
})

test('64 concurrent lookups share one request', async () => {
  await Promise.all(Array.from({ length: 64 }, () => keys.publicKey(did)))
  expect(provider.metadataRequests).toBe(1)
})

test('a missing key is not cached', async () => {
  provider.clients.delete(did)
  expect(await keys.publicKey(did)).toBeUndefined()
  provider.clients.set(did, { metadata: { public_key: key.publicKeyBase58 } })
  expect(bytesOf(await keys.publicKey(did))).toEqual(Buffer.from(key.publicKey))
})

test('the client id is encoded in the URL, and requests use HTTP Basic with form-encoded credentials', async () => {
  await using server = await scriptedAgent({
    [`GET /admin/clients/${encodeURIComponent('did:x:a/../b?c')}`]: () => ({ status: 200, body: '{}' }),
  })
  await using hydra = new HttpClientKeys({ url: `${server.url}/admin/clients/{client_id}`, ...client })
  expect(await hydra.publicKey('did:x:a/../b?c')).toBeUndefined()
  const { authorization = '' } = server.calls[0]?.headers ?? {}
  expect(Buffer.from(authorization.replace('Basic ', ''), 'base64').toString()).toBe(
    'did%3Aparley%3Abob:s%3A%20%25',
  )
})

describe('a faulty provider leads to 503, and the request is never accepted', () => {
  test.each(['status 500', 'not json', 'silence'] as const)('%s', async (fault) => {
    provider.fault = fault
    await expect(keys.publicKey(did)).rejects.toMatchObject(unavailable)
  })

  test.each<[string, object]>([
    ['another client', { client_id: 'did:parley:mallory', public_key: old.publicKeyBase58 }],
    ['a key that is not a string', { public_key: 7 }],
    ['metadata that is not an object', { metadata: 'x' }],
    ['a response that is too large', { public_key: 'x'.repeat(100_000) }],
    ['an array', [1]],
  ])('%s', async (_what, metadata) => {
    provider.clients.set(did, metadata)
    await expect(keys.publicKey(did)).rejects.toMatchObject(unavailable)
  })

  test('requests are suspended after several consecutive connection failures', async () => {
    await using proxy = await startFaultyProxy('http://127.0.0.1:1/clients')
    proxy.fault = 'down'
    await using cut = new HttpClientKeys({ url: `${proxy.url}/{client_id}`, ...client })
    const fail = (id: string) => expect(cut.publicKey(id)).rejects.toMatchObject(unavailable)
    for (let i = 0; i < 5; i += 1) await fail(`${did}${i}`)
    const before = proxy.requests
    for (let i = 0; i < 20; i += 1) await fail(`${did}-${i}`)
    expect(proxy.requests).toBe(before)
  })

  test('an error response does not suspend requests', async () => {
    provider.fault = 'status 500'
    for (let i = 0; i < 8; i += 1)
      await expect(keys.publicKey(`${did}${i}`)).rejects.toMatchObject(unavailable)
    provider.fault = 'none'
    await keys.publicKey(did)
    expect(provider.metadataRequests).toBe(9)
  })
})

describe('a signature that does not verify', () => {
  const body = Buffer.from('{}')
  const by = (pair: typeof key) => ({
    headers: signRequest({ did, key: pair, body: '{}' }),
    body,
    clientId: did,
  })

  test('triggers a fresh read of the metadata, so that a changed key is used', async () => {
    expect(await checkDidSignature(by(key), { clientKeys: keys })).toMatchObject({
      signature: { length: 64 },
    })
    provider.clients.set(did, { public_key: old.publicKeyBase58 })
    expect(await checkDidSignature(by(old), { clientKeys: keys })).toMatchObject({
      signature: { length: 64 },
    })
    expect(provider.metadataRequests).toBe(2)
  })

  test('is rejected if the fresh key does not verify it either', async () => {
    await keys.publicKey(did)
    const refused = { error: 'InvalidTokenSignature', data: { reason: 'crypto_mismatch' } }
    await expect(checkDidSignature(by(old), { clientKeys: keys })).rejects.toMatchObject(refused)
    expect(provider.metadataRequests).toBe(2)
  })

  test('leads to 503 while the provider is unavailable', async () => {
    await keys.publicKey(did)
    provider.fault = 'status 500'
    await expect(checkDidSignature(by(old), { clientKeys: keys })).rejects.toMatchObject(unavailable)
    expect(await checkDidSignature(by(key), { clientKeys: keys })).toMatchObject({
      signature: { length: 64 },
    })
  })
})

test('a server without access to client keys rejects a signed request', async () => {
  const request = { headers: signRequest({ did, key }), body: Buffer.alloc(0), clientId: did }
  await expect(checkDidSignature(request, {})).rejects.toMatchObject({
    data: { reason: 'public_key_unavailable' },
  })
})
