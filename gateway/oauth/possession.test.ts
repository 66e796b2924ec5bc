import { makeDid } from '@parley/kit/did/did'
import { signNextKey } from '@parley/kit/did/key-link'
import { type KeyPair, keyPairFromSeed } from '@parley/kit/did/keys'
import { signRequest, unixNow } from '@parley/kit/did/signature'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startIdentityProvider, type TestIdentityProvider, temporaryFolder } from './testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

let count = 0
const newKey = () => keyPairFromSeed(Buffer.alloc(32, 100 + ++count))
const mallory = newKey()
const didOf = ({ publicKey }: KeyPair) => makeDid({ author: 'bob', name: 'agent', publicKey })

interface Sent {
  did: string
  key: KeyPair
  body: string
}
/** Changes to make to a signed request. */
interface Change {
  metadata?: (metadata: Record<string, unknown>) => object
  headers?: (sent: Sent) => Record<string, string>
  body?: (body: string) => string
}

async function send(
  at: { url: string; method: string; token: string },
  metadata: Record<string, unknown>,
  key: KeyPair,
  change: Change = {},
) {
  const all = { issuer: server.provider.issuer, client_name: 'Grüße 😀', ...metadata }
  const body = JSON.stringify(change.metadata?.(all) ?? all)
  const did = String(metadata['client_id'])
  return server.fetch(at.url, {
    method: at.method,
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${at.token}`,
      ...(change.headers?.({ did, key, body }) ?? signRequest({ did, key, body })),
    },
    body: change.body?.(body) ?? body,
  })
}

const metadataFor = (key: KeyPair) => ({
  client_id: didOf(key),
  grant_types: ['client_credentials'],
  public_key: key.publicKeyBase58,
})

async function register(key: KeyPair, change?: Change) {
  const token = await server.provider.initialAccessToken()
  return send({ url: '/oauth2/register', method: 'POST', token }, metadataFor(key), key, change)
}

const without = (name: string) => (sent: Sent) =>
  Object.fromEntries(Object.entries(signRequest(sent)).filter(([header]) => header !== name))
const at = (seconds: number) => (sent: Sent) => signRequest({ ...sent, timestamp: unixNow() + seconds })

const changes: [string, Change, string][] = [
  ['no signature', { headers: () => ({}) }, 'missing_signature_headers'],
  ['no X-DID', { headers: without('x-did') }, 'missing_signature_headers'],
  ['no timestamp', { headers: without('x-did-timestamp') }, 'missing_signature_headers'],
  [
    'the signature of another key',
    { headers: (sent) => signRequest({ ...sent, key: mallory }) },
    'crypto_mismatch',
  ],
  [
    'a valid signature by another DID and key',
    { headers: ({ body }) => signRequest({ did: didOf(mallory), key: mallory, body }) },
    'did_mismatch',
  ],
  [
    'an invalid signature',
    { headers: (sent) => ({ ...signRequest(sent), 'x-did-signature': 'O0l' }) },
    'malformed_input',
  ],
  ['a signature of 301 seconds ago', { headers: at(-301) }, 'timestamp_out_of_window'],
  ['a signature of 310 seconds ahead', { headers: at(310) }, 'timestamp_out_of_window'],
  ['a body with an additional byte', { body: (body) => `${body} ` }, 'crypto_mismatch'],
  ['a re-serialized body', { body: (body) => JSON.stringify(JSON.parse(body), null, 1) }, 'crypto_mismatch'],
  [
    'a signature over an empty body',
    { headers: (sent) => signRequest({ ...sent, body: '' }) },
    'crypto_mismatch',
  ],
  [
    'the issuer of another server',
    { metadata: (metadata) => ({ ...metadata, issuer: 'https://mallory.example/oauth2' }) },
    'issuer',
  ],
  ['no issuer', { metadata: ({ issuer: _gone, ...metadata }) => metadata }, 'issuer'],
  [
    'an issuer that is not a string',
    { metadata: (metadata) => ({ ...metadata, issuer: [metadata['issuer']] }) },
    'issuer',
  ],
]

test('a client whose id is a DID is registered by a request signed with its key', async () => {
  const key = newKey()
  const answer = await register(key)
  expect([answer.status, answer.body]).toMatchObject([201, { client_id: didOf(key) }])
  expect(answer.body).not.toHaveProperty('issuer')
})

test.each(changes)('with %s it is refused, and the DID stays available', async (_what, change, reason) => {
  const key = newKey()
  const refused = await register(key, change)
  expect([refused.status, refused.body['error']]).toEqual([400, 'invalid_client_metadata'])
  expect(refused.body['error_description']).toContain(reason)
  expect(await server.provider.clientMetadata(didOf(key))).toBeUndefined()
  expect((await register(key)).status).toBe(201)
})

test('the signature covers a whole body sent in many chunks, and an oversized body is not read', async () => {
  const padded = (length: number): Change => ({
    metadata: (metadata) => ({ ...metadata, unknown: 'y'.repeat(length) }),
  })
  expect((await register(newKey(), padded(50_000))).body['error_description']).toBeUndefined()
  expect((await register(newKey(), padded(60_000))).status).toBe(413)
})

describe('another key (RFC 7592)', () => {
  const link = (first: KeyPair, next: KeyPair) => [
    { publicKeyBase58: first.publicKeyBase58 },
    { publicKeyBase58: next.publicKeyBase58, signature: signNextKey(first, next.publicKeyBase58) },
  ]
  /** Returns a client with the first of two keys, and a function that updates the client. */
  async function registered() {
    const [first, next] = [newKey(), newKey()]
    const { body } = await register(first)
    const place = {
      url: String(body['registration_client_uri']),
      method: 'PUT',
      token: String(body['registration_access_token']),
    }
    const metadata = { ...metadataFor(first), client_secret: body['client_secret'] }
    const rotated = { ...metadata, public_key: next.publicKeyBase58, key_history: link(first, next) }
    return { place, first, next, metadata, rotated }
  }

  test('is accepted if the old key has signed it and it signs the request', async () => {
    const { place, next, rotated } = await registered()
    expect((await send(place, rotated, next)).status).toBe(200)
    expect(await server.provider.clientMetadata(rotated.client_id)).toMatchObject({
      publicKey: next.publicKeyBase58,
    })
  })

  test('a request signed with the old key is not sufficient', async () => {
    const { place, first, rotated } = await registered()
    const refused = await send(place, rotated, first)
    expect(refused.status).toBe(400)
    expect(refused.body['error_description']).toContain('crypto_mismatch')
  })

  test("a request signed with the new key is not sufficient without the old key's signature", async () => {
    const { place, first, next, metadata } = await registered()
    const public_key = next.publicKeyBase58
    for (const key_history of [undefined, link(first, mallory), link(next, next)]) {
      expect((await send(place, { ...metadata, public_key, key_history }, next)).status).toBe(400)
    }
    expect(await server.provider.clientMetadata(metadata.client_id)).toMatchObject({
      publicKey: first.publicKeyBase58,
    })
  })

  test('an update without a new key needs no signature', async () => {
    const { place, first, metadata } = await registered()
    expect((await send(place, metadata, first, { headers: () => ({}) })).status).toBe(200)
  })
})
