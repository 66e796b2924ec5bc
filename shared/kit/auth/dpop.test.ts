import { createHash } from 'node:crypto'
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JWTPayload,
  SignJWT,
  UnsecuredJWT,
} from 'jose'
import { beforeAll, expect, test } from 'vitest'
import { Authenticator, type RequestHead } from './authenticate.ts'
import type { Introspection } from './introspection.ts'

const server = 'https://agent.example/base'
const token = 'a-bound-token'
const now = () => Math.floor(Date.now() / 1000)
const ath = (of: string) => createHash('sha256').update(of).digest('base64url')

interface TestKey {
  privateKey: CryptoKey
  jwk: object
  jkt: string
}
let mine: TestKey
let theirs: TestKey

async function newKey(alg = 'ES256'): Promise<TestKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  const jwk = await exportJWK(publicKey)
  return { privateKey, jwk, jkt: await calculateJwkThumbprint(jwk) }
}

beforeAll(async () => {
  mine = await newKey()
  theirs = await newKey()
})

let count = 0
function claims(more: JWTPayload = {}): JWTPayload {
  count += 1
  const defaults = { htm: 'POST', htu: `${server}/`, iat: now(), jti: `proof-${count}`, ath: ath(token) }
  return { ...defaults, ...more }
}

function without(name: string): JWTPayload {
  return Object.fromEntries(Object.entries(claims()).filter(([claim]) => claim !== name))
}

const proofOf = (payload: JWTPayload, { privateKey, jwk } = mine, header: object = {}) =>
  new SignJWT(payload).setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header }).sign(privateKey)

function newAuthenticator(answer: Partial<Introspection> = {}) {
  const taken = new Set<string>()
  const takeProof = async (id: Uint8Array) => {
    const isNew = !taken.has(Buffer.from(id).toString('hex'))
    taken.add(Buffer.from(id).toString('hex'))
    return isNew
  }
  const introspect = async () => ({ active: true, client_id: 'alice', cnf: { jkt: mine.jkt }, ...answer })
  return new Authenticator({ introspect }, () => [server, 'did:parley:agent'], {
    proofs: { accepted: { takeProof }, addresses: () => [server] },
  })
}

function request(proof?: string, { scheme = 'DPoP', method = 'POST', url = '/' } = {}): RequestHead {
  const headers = { authorization: `${scheme} ${token}`, ...(proof !== undefined && { dpop: proof }) }
  return { headers, method, url }
}

async function reasonOf(refused: Promise<unknown>): Promise<unknown> {
  const error: unknown = await refused.catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: -32010, status: 401 })
  return error instanceof Error && 'data' in error ? error.data : error
}

test('a bound token with a proof of its key is accepted', async () => {
  const caller = await newAuthenticator().authenticate(request(await proofOf(claims())))
  expect(caller).toMatchObject({ id: 'alice' })
})

test('a proof by an Ed25519 key is accepted', async () => {
  const key = await newKey('EdDSA')
  const proof = await proofOf(claims(), key, { alg: 'EdDSA' })
  const authenticator = newAuthenticator({ cnf: { jkt: key.jkt } })
  expect(await authenticator.authenticate(request(proof))).toMatchObject({ id: 'alice' })
})

test.each([
  ['query and fragment', `${server}/tasks/list?x=1#y`, '/tasks/list?cursor=2'],
  ['the default port and the case of the host', 'HTTPS://AGENT.example:443/base/tasks/list', '/tasks/list'],
  ['the encoding of unreserved characters', `${server}/%7Ealice/%c3%a9`, '/~alice/%C3%A9'],
])('the comparison of htu ignores %s', async (_what, htu, url) => {
  const proof = await proofOf(claims({ htu }))
  expect(await newAuthenticator().authenticate(request(proof, { url }))).toMatchObject({ id: 'alice' })
})

test('a bound token sent as a bearer token is refused, with or without a proof', async () => {
  const error: unknown = await newAuthenticator()
    .authenticate(request(undefined, { scheme: 'Bearer' }))
    .catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    code: -32010,
    headers: { 'www-authenticate': expect.stringMatching(/^DPoP error="invalid_token".*algs="ES256/) },
  })
  const withProof = request(await proofOf(claims()), { scheme: 'bearer' })
  expect(await reasonOf(newAuthenticator().authenticate(withProof))).toEqual({ reason: 'proof_missing' })
})

test('an unbound token with the scheme DPoP is refused', async () => {
  const authenticator = newAuthenticator({ cnf: undefined })
  const refused = authenticator.authenticate(request(await proofOf(claims())))
  expect(await reasonOf(refused)).toEqual({})
})

test('a token that is bound in another way, or reaches a server that checks no proofs, is refused', async () => {
  const certificate = newAuthenticator({ cnf: { 'x5t#S256': 'abc' } })
  const asBearer = certificate.authenticate(request(undefined, { scheme: 'Bearer' }))
  expect(await reasonOf(asBearer)).toEqual({})
  const introspect = async () => ({ active: true, client_id: 'alice', cnf: { jkt: mine.jkt } })
  const unprepared = new Authenticator({ introspect }, () => [server])
  const refused = unprepared.authenticate(request(await proofOf(claims())))
  expect(await reasonOf(refused)).toEqual({})
})

test('a proof is accepted once, also for another URL and at `identify`', async () => {
  const authenticator = newAuthenticator()
  const proof = await proofOf(claims())
  await authenticator.identify(request(proof))
  expect(await reasonOf(authenticator.authenticate(request(proof)))).toEqual({ reason: 'proof_replayed' })
  const other = await proofOf(claims({ jti: 'once', htu: `${server}/a` }))
  await authenticator.authenticate(request(other, { url: '/a' }))
  const again = await proofOf(claims({ jti: 'once', htu: `${server}/b` }))
  expect(await reasonOf(authenticator.authenticate(request(again, { url: '/b' })))).toEqual({
    reason: 'proof_replayed',
  })
})

test('a request that is identified twice has one proof, unless its token changes', async () => {
  const authenticator = newAuthenticator()
  const sent = request(await proofOf(claims()))
  await Promise.all([authenticator.identify(sent), authenticator.authenticate(sent)])
  sent.headers.authorization = 'DPoP another-token'
  expect(await reasonOf(authenticator.authenticate(sent))).toEqual({ reason: 'proof_token_mismatch' })
})

test.each<[string, string, () => Promise<string | undefined> | string | undefined]>([
  ['no proof', 'proof_missing', () => undefined],
  ['text that is no JWT', 'malformed_proof', () => 'proof'],
  ['two proofs', 'malformed_proof', async () => `${await proofOf(claims())}, ${await proofOf(claims())}`],
  ['an overlong proof', 'malformed_proof', () => proofOf(claims({ more: 'x'.repeat(4096) }))],
  ['another key', 'proof_key_mismatch', () => proofOf(claims(), theirs)],
  [
    'another signature',
    'proof_crypto_mismatch',
    () => proofOf(claims(), { ...mine, privateKey: theirs.privateKey }),
  ],
  ['another method', 'proof_method_mismatch', () => proofOf(claims({ htm: 'GET' }))],
  ['another path', 'proof_url_mismatch', () => proofOf(claims({ htu: `${server}/tasks/list` }))],
  ['another host', 'proof_url_mismatch', () => proofOf(claims({ htu: 'https://gateway.example/base/' }))],
  ['another scheme', 'proof_url_mismatch', () => proofOf(claims({ htu: 'http://agent.example/base/' }))],
  [
    'a user in the URL',
    'proof_url_mismatch',
    () => proofOf(claims({ htu: 'https://a@agent.example/base/' })),
  ],
  ['no URL', 'proof_url_mismatch', () => proofOf(claims({ htu: undefined }))],
  ['another token', 'proof_token_mismatch', () => proofOf(claims({ ath: ath('other') }))],
  ['no ath', 'proof_token_mismatch', () => proofOf(claims({ ath: undefined }))],
  ['an old proof', 'proof_out_of_window', () => proofOf(claims({ iat: now() - 62 }))],
  ['a future proof', 'proof_out_of_window', () => proofOf(claims({ iat: now() + 62 }))],
  ['no iat', 'proof_out_of_window', () => proofOf(without('iat'))],
  ['no jti', 'malformed_proof', () => proofOf(without('jti'))],
  ['an overlong jti', 'malformed_proof', () => proofOf(claims({ jti: 'x'.repeat(257) }))],
  ['another type', 'malformed_proof', () => proofOf(claims(), mine, { typ: 'jwt' })],
  ['no key in the header', 'malformed_proof', () => proofOf(claims(), mine, { jwk: undefined })],
  ['alg none', 'malformed_proof', () => new UnsecuredJWT(claims()).encode()],
  [
    'HS256 with the public key as the secret',
    'malformed_proof',
    () =>
      new SignJWT(claims())
        .setProtectedHeader({ alg: 'HS256', typ: 'dpop+jwt', jwk: mine.jwk })
        .sign(Buffer.from(JSON.stringify(mine.jwk))),
  ],
  [
    'a private key in the header',
    'malformed_proof',
    async () => proofOf(claims(), mine, { jwk: await exportJWK(mine.privateKey) }),
  ],
])('%s: 401, -32010, invalid_dpop_proof, %s', async (_what, reason, proof) => {
  const error: unknown = await newAuthenticator()
    .authenticate(request(await proof()))
    .catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({
    code: -32010,
    status: 401,
    data: { reason },
    headers: { 'www-authenticate': expect.stringMatching(/^DPoP error="invalid_dpop_proof"/) },
  })
})
