import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { importJWK, SignJWT, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Authenticator } from './authenticate.ts'
import type { Introspection } from './introspection.ts'
import { acceptingStatements, isStatement, StatementVerifier } from './statement.ts'

const gateway = 'https://gateway.example'
const agent = 'did:key:agent'

interface Key {
  kid: string
  privateKey: KeyObject
  jwk: object
}

function newKey(kid: string = randomUUID()): Key {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'EdDSA' } }
}

let server: Server
let url: string
let served: { status: number; body: unknown }
let requests: number
let key: Key
let verifier: StatementVerifier

beforeEach(async () => {
  key = newKey()
  served = { status: 200, body: { issuer: gateway, keys: [key.jwk] } }
  requests = 0
  server = createServer(({ url: path }, response) => {
    requests += 1
    response.statusCode = path === '/.well-known/jwks.json' ? served.status : 404
    response.end(JSON.stringify(served.body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  verifier = new StatementVerifier(url)
})
afterEach(async () => {
  vi.useRealTimers()
  vi.restoreAllMocks()
  passed = 0
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})

/** The answer of a gateway with its own OAuth server. */
const signsNone = { status: 404, body: { error: { code: -32040, data: { reason: 'statement_keys' } } } }

const now = () => Math.floor(Date.now() / 1000)
interface Parts {
  header?: object
  claims?: object
  by?: Key
}
const statement = async ({ header = {}, claims = {}, by = key }: Parts = {}): Promise<string> =>
  new SignJWT({
    client_id: 'alice',
    scope: 'agent:read agent:write',
    act: { sub: gateway },
    iss: gateway,
    aud: agent,
    iat: now(),
    exp: now() + 60,
    ...claims,
  })
    .setProtectedHeader({ alg: 'EdDSA', typ: 'parley-statement+jwt', kid: by.kid, ...header })
    .sign(by.privateKey)
const isActive = async (text: string) => (await verifier.verify(text)).active
const realNow = performance.now.bind(performance)
let passed = 0
/** Moves both clocks forward. */
const wait = (ms: number) => {
  passed += ms
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })
  vi.spyOn(performance, 'now').mockImplementation(() => realNow() + passed)
}

test('a statement of the gateway is accepted without a request to the OAuth server', async () => {
  expect(await verifier.verify(await statement())).toEqual({
    active: true,
    client_id: 'alice',
    scope: 'agent:read agent:write',
    act: { sub: gateway },
    aud: agent,
    exp: expect.any(Number),
    gateways: [gateway],
  })
})

test('the keys are fetched once', async () => {
  await Promise.all([statement(), statement(), statement()].map(async (one) => isActive(await one)))
  expect(requests).toBe(1)
})

describe('a statement is not active', () => {
  test.each<[string, () => Parts]>([
    ['of another gateway', () => ({ claims: { iss: 'https://other.example' } })],
    ['without an issuer', () => ({ claims: { iss: undefined } })],
    ['without an audience', () => ({ claims: { aud: undefined } })],
    ['with an empty audience', () => ({ claims: { aud: [] } })],
    ['without an expiry', () => ({ claims: { exp: undefined } })],
    ['without a time of issue', () => ({ claims: { iat: undefined } })],
    ['without a client', () => ({ claims: { client_id: undefined } })],
    ['with a client that is not text', () => ({ claims: { client_id: { id: 'alice' } } })],
    ['with a client that contains a control character', () => ({ claims: { client_id: 'a\u001Fb' } })],
    ['with a lifetime of a day', () => ({ claims: { exp: now() + 86_400 } })],
    ['issued in the future', () => ({ claims: { iat: now() + 60, exp: now() + 120 } })],
    ['not yet valid', () => ({ claims: { nbf: now() + 60 } })],
    ['of another type', () => ({ header: { typ: 'JWT' } })],
    ['without a type', () => ({ header: { typ: undefined } })],
    ['signed with an unknown key', () => ({ by: newKey() })],
    ['signed with another key under a known id', () => ({ by: newKey(key.kid) })],
  ])('%s', async (_what, parts) => {
    expect(await isActive(await statement(parts()))).toBe(false)
  })

  test('that has expired, with its expiry', async () => {
    const exp = now() - 30
    const expired = await statement({ claims: { iat: exp - 60, exp } })
    expect(await verifier.verify(expired)).toEqual({ active: false, exp })
  })

  test('that expires after it was verified', async () => {
    const text = await statement()
    expect(await isActive(text)).toBe(true)
    wait(66_000)
    expect(await verifier.verify(text)).toMatchObject({ active: false, exp: expect.any(Number) })
  })

  test('without a signature, or with the algorithm none', async () => {
    const text = await statement()
    expect(await isActive(text.slice(0, text.lastIndexOf('.') + 1))).toBe(false)
    const unsecured = new UnsecuredJWT({
      client_id: 'alice',
      iss: gateway,
      aud: agent,
      iat: now(),
      exp: now() + 60,
    })
    const [, payload] = unsecured.encode().split('.')
    const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'parley-statement+jwt' })).toString(
      'base64url',
    )
    expect(await isActive(`${header}.${payload}.`)).toBe(false)
  })

  test('signed with the public key as an HMAC secret', async () => {
    const { x } = key.jwk as { x: string }
    const secret = await importJWK({ kty: 'oct', k: x }, 'HS256')
    const text = await new SignJWT({
      client_id: 'alice',
      iss: gateway,
      aud: agent,
      iat: now(),
      exp: now() + 60,
    })
      .setProtectedHeader({ alg: 'HS256', typ: 'parley-statement+jwt', kid: key.kid })
      .sign(secret)
    expect(await isActive(text)).toBe(false)
  })

  test.each(['changed', 'truncated'])('%s', async (how) => {
    const text = await statement()
    const [header = '', payload = '', signature = ''] = text.split('.')
    const claims = Buffer.from(payload, 'base64url').toString('utf8').replace('alice', 'mallory')
    const changed = [header, Buffer.from(claims).toString('base64url'), signature].join('.')
    expect(await isActive(how === 'changed' ? changed : text.slice(0, -10))).toBe(false)
  })
})

describe('the keys of the gateway', () => {
  test('a new key is fetched as soon as a statement names it, but not more often than every 3 s', async () => {
    expect(await isActive(await statement())).toBe(true)
    const next = newKey()
    served = { status: 200, body: { issuer: gateway, keys: [key.jwk, next.jwk] } }
    wait(3100)
    expect(await isActive(await statement({ by: next }))).toBe(true)
    expect(requests).toBe(2)
    for (let i = 0; i < 10; i += 1) expect(await isActive(await statement({ by: newKey() }))).toBe(false)
    expect(requests).toBe(2)
  })

  test('a removed key is no longer accepted after five minutes', async () => {
    expect(await isActive(await statement())).toBe(true)
    served = { status: 200, body: { issuer: gateway, keys: [newKey().jwk] } }
    wait(301_000)
    expect(await isActive(await statement())).toBe(false)
  })

  test.each<[string, () => unknown]>([
    ['an error', () => ({ status: 500, body: {} })],
    ['something else', () => ({ status: 200, body: { keys: 'none' } })],
    [
      'too many keys',
      () => ({ status: 200, body: { issuer: gateway, keys: Array.from({ length: 65 }, () => key.jwk) } }),
    ],
    [
      'a large document',
      () => ({ status: 200, body: { issuer: gateway, keys: [key.jwk], more: 'x'.repeat(100_000) } }),
    ],
  ])('if the gateway answers with %s, requests are rejected with 503', async (_what, answer) => {
    served = answer() as typeof served
    await expect(verifier.verify(await statement())).rejects.toMatchObject({
      status: 503,
      data: { reason: 'gateway_keys' },
    })
  })

  test('a gateway that signs no statements answers with 404, and no statement is active', async () => {
    served = signsNone
    expect(await isActive(await statement())).toBe(false)
    expect(await isActive(await statement({ claims: { iss: '' } }))).toBe(false)
    expect(requests).toBe(1)
  })

  test('known keys are used while the gateway does not respond, until they are five minutes old', async () => {
    expect(await isActive(await statement())).toBe(true)
    served = { status: 500, body: {} }
    wait(200_000)
    expect(await isActive(await statement())).toBe(true)
    expect(await isActive(await statement({ by: newKey() }))).toBe(false)
    wait(301_000)
    await expect(verifier.verify(await statement())).rejects.toMatchObject({ status: 503 })
  })
})

describe('the Authenticator of an agent', () => {
  const inner = {
    introspected: [] as string[],
    /** The party that acts with a token. */
    acts: new Map<string, string>(),
    introspect: async (token: string): Promise<Introspection> => {
      inner.introspected.push(token)
      const act = inner.acts.get(token)
      return { active: true, client_id: 'bob', ...(act && { act: { sub: act } }) }
    },
    ping: async () => {},
  }
  const authenticate = (token: string) =>
    new Authenticator(acceptingStatements(inner, verifier), () => [agent]).authenticate({
      headers: { authorization: `Bearer ${token}` },
      method: 'POST',
      url: '/',
    })

  test('accepts a statement for this agent only', async () => {
    expect(await authenticate(await statement())).toMatchObject({
      id: 'alice',
      subject: 'alice',
      audience: [agent],
    })
    const other = statement({ claims: { aud: 'did:key:other' } })
    await expect(authenticate(await other)).rejects.toMatchObject({ code: -32010, status: 401 })
    expect(inner.introspected).toEqual([])
  })

  describe('a party that acts for the caller', () => {
    const client = 'https://client.example/metadata.json'
    const other = 'https://other.example'
    const parties = async (token: string) => {
      const { id, delegate } = await authenticate(token)
      return { id, delegate }
    }
    test('is a gateway in a statement only if it issued the statement', async () => {
      expect(await parties(await statement())).toEqual({ id: 'alice', delegate: undefined })
      for (const sub of [client, other]) {
        const acting = await statement({ claims: { act: { sub: gateway, act: { sub } } } })
        expect(await parties(acting)).toEqual({ id: `alice\u001F${sub}`, delegate: sub })
      }
    })
    test('is a gateway in another token only if the agent has joined it', async () => {
      const tokenBy = new Map([gateway, client, other].map((sub, at) => [sub, `exchanged-${at}`]))
      for (const [sub, token] of tokenBy) inner.acts.set(token, sub)
      expect(await parties(tokenBy.get(gateway) ?? '')).toEqual({ id: 'bob', delegate: undefined })
      for (const sub of [client, other])
        expect(await parties(tokenBy.get(sub) ?? '')).toEqual({ id: `bob\u001F${sub}`, delegate: sub })
      expect(requests).toBe(1)
    })
    test('is trusted if the gateway has its own OAuth server, which refuses such clients', async () => {
      served = signsNone
      inner.acts.set('exchanged', other)
      expect(await parties('exchanged')).toEqual({ id: 'bob', delegate: undefined })
    })
    test('is not trusted because a proxy answers with 404 while the gateway starts', async () => {
      inner.acts.set('exchanged', other)
      for (const body of [{}, '404 page not found', { error: { data: { reason: 'route' } } }]) {
        served = { status: 404, body }
        verifier = new StatementVerifier(url)
        await expect(parties('exchanged')).rejects.toMatchObject({ status: 503 })
      }
    })
    test('is refused while the keys of the gateway are unknown and cannot be read', async () => {
      served = { status: 500, body: {} }
      inner.acts.set('exchanged', gateway)
      await expect(parties('exchanged')).rejects.toMatchObject({ status: 503 })
      expect(await parties('direct')).toEqual({ id: 'bob', delegate: undefined })
    })
  })

  test('reports an expired statement as expired', async () => {
    const expired = await statement({ claims: { iat: now() - 90, exp: now() - 30 } })
    await expect(authenticate(expired)).rejects.toMatchObject({ code: -32011, status: 401 })
  })

  test('introspects every other token with the OAuth server', async () => {
    const jwt = await statement({ header: { typ: 'at+jwt' } })
    inner.introspected.length = 0
    for (const token of [jwt, 'opaque', 'eyJ.eyJ.x'])
      expect(await authenticate(token)).toMatchObject({ id: 'bob' })
    expect(inner.introspected).toEqual([jwt, 'opaque', 'eyJ.eyJ.x'])
    expect([isStatement(jwt), isStatement('eyJ'), isStatement('')]).toEqual([false, false, false])
  })
})
