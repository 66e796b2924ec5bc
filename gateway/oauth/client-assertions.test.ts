import { randomUUID } from 'node:crypto'
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startIdentityProvider, type TestIdentityProvider, temporaryFolder } from './testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let privateKey: CryptoKey
let jwk: JWK
let clientId: string
const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'

beforeAll(async () => {
  folder = await temporaryFolder()
  const agents = { isTrusted: (id: string) => id === clientId }
  server = await startIdentityProvider({ dir: folder.dir, agents })
  const pair = await generateKeyPair('ES256', { extractable: true })
  privateKey = pair.privateKey
  jwk = await exportJWK(pair.publicKey)
  const { body } = await register({ keys: [jwk] })
  clientId = String(body['client_id'])
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const register = (jwks: unknown, more: object = {}) =>
  server.register({
    client_name: 'a client with a key',
    grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'private_key_jwt',
    jwks,
    ...more,
  })

function claims(more: object = {}): JWTPayload {
  const now = Math.floor(Date.now() / 1000)
  const aud = server.provider.issuer
  return { iss: clientId, sub: clientId, aud, jti: randomUUID(), iat: now, exp: now + 60, ...more }
}
const signed = (payload: JWTPayload, alg = 'ES256', key: CryptoKey | Uint8Array = privateKey) =>
  new SignJWT(payload).setProtectedHeader({ alg }).sign(key)
const tokenFor = (assertion: string) =>
  server.post('/oauth2/token', {
    grant_type: 'client_credentials',
    client_assertion_type: assertionType,
    client_assertion: assertion,
  })

test('a client assertion is accepted once, at any gateway', async () => {
  const assertion = await signed(claims())
  const answers = await Promise.all([tokenFor(assertion), tokenFor(assertion), tokenFor(assertion)])
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)[0]).toBe(200)
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect((await tokenFor(assertion)).status).toBe(401)
})

test.each<[string, () => Promise<string> | string]>([
  ['for another server', () => signed(claims({ aud: 'https://other.example' }))],
  ['of another client', () => signed(claims({ iss: 'other' }))],
  ['that has expired', () => signed(claims({ exp: Math.floor(Date.now() / 1000) - 1 }))],
  [
    'that is valid for more than an hour',
    () => signed(claims({ exp: Math.floor(Date.now() / 1000) + 3700 })),
  ],
  ['without jti', () => signed(claims({ jti: undefined }))],
  ['with a long jti', () => signed(claims({ jti: 'x'.repeat(257) }))],
  ['by another key', async () => signed(claims(), 'ES256', (await generateKeyPair('ES256')).privateKey)],
  ['with alg none', () => new UnsecuredJWT(claims()).encode()],
  ['with HS256 and the public key', () => signed(claims(), 'HS256', Buffer.from(JSON.stringify(jwk)))],
])('an assertion %s is refused', async (_what, assertion) => {
  const { status, body } = await tokenFor(await assertion())
  expect([status, body['error']]).toEqual([401, 'invalid_client'])
})

test.each<[string, () => unknown]>([
  ['no keys', () => ({ keys: [] })],
  ['more than ten keys', () => ({ keys: Array.from({ length: 11 }, () => jwk) })],
  ['a private key', async () => ({ keys: [await exportJWK(privateKey)] })],
  [
    'a private key as WebCrypto exports it',
    async () => ({ keys: [await crypto.subtle.exportKey('jwk', privateKey)] }),
  ],
  ['a key for encryption', () => ({ keys: [{ ...jwk, use: 'enc' }] })],
  ['a key with other uses than verification', () => ({ keys: [{ ...jwk, key_ops: ['verify', 'sign'] }] })],
  ['an ext that is not a boolean', () => ({ keys: [{ ...jwk, ext: 'yes' }] })],
  ['a symmetric key', () => ({ keys: [{ kty: 'oct', k: 'c2VjcmV0' }] })],
  [
    'an RSA key of 1024 bits',
    () => ({ keys: [{ kty: 'RSA', e: 'AQAB', n: Buffer.alloc(128, 255).toString('base64url') }] }),
  ],
  ['an EC key of another curve', () => ({ keys: [{ ...jwk, crv: 'P-384' }] })],
  ['an address of certificates', () => ({ keys: [{ ...jwk, x5u: 'https://a.example' }] })],
  ['keys of another type', () => ({ keys: jwk })],
  ['a text', () => 'keys'],
])('a registration with %s is refused', async (_what, keys) => {
  const { status, body } = await register(await keys())
  expect([status, body['error']]).toEqual([400, 'invalid_client_metadata'])
})

test('a public key is registered as WebCrypto exports it, and is stored without ext and key_ops', async () => {
  const pair = await generateKeyPair('ES256', { extractable: true })
  const exported = await crypto.subtle.exportKey('jwk', pair.publicKey)
  expect(exported).toMatchObject({ ext: true, key_ops: ['verify'] })
  const { status, body } = await register({ keys: [{ ...exported, kid: 'one', use: 'sig', alg: 'ES256' }] })
  expect(status).toBe(201)
  const { kty, crv, x, y } = exported
  expect(body['jwks']).toEqual({ keys: [{ kty, crv, x, y, kid: 'one', use: 'sig', alg: 'ES256' }] })
  const id = String(body['client_id'])
  const { status: issued } = await tokenFor(
    await signed(claims({ iss: id, sub: id }), 'ES256', pair.privateKey),
  )
  expect(issued).toBe(200)
})

test('jwks_uri is refused, because the server fetches nothing for clients', async () => {
  const { status, body } = await register(undefined, { jwks_uri: 'https://a.example/jwks' })
  expect([status, body['error_description']]).toEqual([400, expect.stringContaining('jwks_uri')])
})

test('an agent that authenticates with a key introspects the tokens of its callers, and other clients do not', async () => {
  const { body: caller } = await server.register({
    client_name: 'caller',
    grant_types: ['client_credentials'],
  })
  const as = { clientId: String(caller['client_id']), clientSecret: String(caller['client_secret']) }
  const token = await server.token(as)
  const { body: unknown } = await register({ keys: [jwk] })
  const ask = async (id: string) => {
    const assertion = {
      client_assertion_type: assertionType,
      client_assertion: await signed(claims({ iss: id, sub: id })),
    }
    return (await server.post('/oauth2/introspect', { token, ...assertion })).body
  }
  expect(await ask(clientId)).toMatchObject({ active: true, client_id: as.clientId })
  expect(await ask(String(unknown['client_id']))).toEqual({ active: false })
})

test('a client with a key is refused with another client’s method of authentication', async () => {
  const { status } = await server.post(
    '/oauth2/token',
    { grant_type: 'client_credentials' },
    { clientId, clientSecret: 'x'.repeat(43) },
  )
  expect(status).toBe(401)
})
