import { randomUUID } from 'node:crypto'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  basic,
  type Credentials,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from './testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let client: Credentials
let privateKey: CryptoKey
let jwk: JWK

beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
  const pair = await generateKeyPair('ES256')
  privateKey = pair.privateKey
  jwk = await exportJWK(pair.publicKey)
  const { body } = await server.register({ client_name: 'bound', grant_types: ['client_credentials'] })
  client = { clientId: String(body['client_id']), clientSecret: String(body['client_secret']) }
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const now = () => Math.floor(Date.now() / 1000)
const proofOf = (claims: JWTPayload = {}) =>
  new SignJWT({
    htm: 'POST',
    htu: `${server.provider.issuer}/token`,
    jti: randomUUID(),
    iat: now(),
    ...claims,
  })
    .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk })
    .sign(privateKey)
const request = (dpop: string) =>
  server.fetch('/oauth2/token', {
    method: 'POST',
    headers: { authorization: basic(client), dpop },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })

test('a proof gets one token, however many requests contain it', async () => {
  const dpop = await proofOf()
  const answers = await Promise.all([request(dpop), request(dpop), request(dpop)])
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  expect((await request(dpop)).status).toBe(400)
  expect((await request(await proofOf())).body).toMatchObject({ token_type: 'DPoP' })
})

test('an old proof needs the nonce of the server, which stays valid after a restart', async () => {
  const iat = now() - 600
  const old = await request(await proofOf({ iat }))
  expect([old.status, old.body['error']]).toEqual([400, 'use_dpop_nonce'])
  const nonce = old.headers.get('dpop-nonce') ?? ''
  const port = Number(new URL(server.origin).port)
  await server[Symbol.asyncDispose]()
  server = await startIdentityProvider({ dir: folder.dir, port })
  expect((await request(await proofOf({ iat, nonce }))).status).toBe(200)
  const forged = await request(await proofOf({ iat, nonce: 'x'.repeat(43) }))
  expect([forged.status, forged.body['error']]).toEqual([400, 'use_dpop_nonce'])
})

test.each([
  ['another method', { htm: 'GET' }],
  ['another endpoint', { htu: 'https://other.example/token' }],
  ['a future time', { iat: now() + 600 }],
])('a token request with a proof for %s is refused', async (_what, claims) => {
  const { status, body } = await request(await proofOf(claims))
  expect([status, body['error']]).toEqual([
    400,
    expect.stringMatching(/^(invalid_dpop_proof|use_dpop_nonce)$/),
  ])
})

test('the metadata names the algorithms of proofs and the methods of client authentication', async () => {
  const { body } = await server.fetch('/.well-known/oauth-authorization-server')
  const methods = ['client_secret_basic', 'client_secret_post', 'private_key_jwt']
  expect(body).toMatchObject({
    dpop_signing_alg_values_supported: ['ES256', 'Ed25519', 'EdDSA'],
    token_endpoint_auth_methods_supported: [...methods, 'none'],
    token_endpoint_auth_signing_alg_values_supported: ['ES256', 'Ed25519', 'EdDSA', 'RS256'],
    introspection_endpoint_auth_methods_supported: methods,
    revocation_endpoint_auth_methods_supported: [...methods, 'none'],
  })
})
