import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { HttpIntrospector, type Introspection, nestedActors } from '@parley/kit/auth/introspection'
import { StatementVerifier } from '@parley/kit/auth/statement'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import { makeLog } from '@parley/kit/process/log'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SecretFiles } from '../../keys/secret-files.ts'
import { type Claims, claimsIn } from '../../store/claims.ts'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import { temporaryFolder, testMasters } from '../testing.ts'
import { hashOf, type SubjectToken } from '../token-exchange.ts'
import { ExternalTokenExchange } from './external-exchange.ts'
import { StatementKeys } from './statement-keys.ts'
import { StatementSigner } from './statements.ts'

const gatewayUrl = 'https://gateway.example'
const agent = {
  id: 'a1',
  resource: 'did:key:agent',
  names: ['https://gateway.example/agents/agent'],
  mayAct: true,
}
const grant = 'urn:ietf:params:oauth:grant-type:token-exchange'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let provider: TestIdentityProvider
let claims: Claims
let introspector: HttpIntrospector
let logged: string[]
const open: (() => unknown)[] = []

beforeEach(async () => {
  folder = await temporaryFolder()
  provider = await TestIdentityProvider.start()
  const database = await openDatabase(path.join(folder.dir, 'gateway.db'), gatewayMigrations)
  claims = claimsIn(sqliteDocuments(database), 'gateway_signatures')
  introspector = new HttpIntrospector({ url: provider.url, clientId: 'gateway', clientSecret: 's' })
  logged = []
  open.push(
    () => introspector[Symbol.asyncDispose](),
    () => database[Symbol.asyncDispose](),
    () => provider[Symbol.asyncDispose](),
    () => folder[Symbol.asyncDispose](),
  )
})
afterEach(async () => {
  vi.useRealTimers()
  for (const close of open.splice(0)) await close()
})

async function signer(keysDir = path.join(folder.dir, 'keys')): Promise<StatementSigner> {
  const files = new SecretFiles(keysDir, testMasters)
  const keys = await StatementKeys.start({ files, issuer: gatewayUrl, claims, onFailure: () => {} })
  open.unshift(() => keys[Symbol.dispose]())
  return new StatementSigner(keys)
}

async function start(): Promise<ExternalTokenExchange> {
  const log = makeLog({
    level: 'debug',
    name: 'test',
    destination: { write: (line) => void logged.push(line) },
  })
  return new ExternalTokenExchange({
    issuer: provider.url,
    introspector: { introspect },
    client: { clientId: 'gateway', clientSecret: 'the gateway’s secret' },
    tokenUrl: undefined,
    statements: await signer(),
    delegated: { sealSubject: (token) => `sealed ${token.length}` },
    gatewayUrl,
    names: [gatewayUrl],
    log,
  })
}

/** The token of a request, introspected for this request. */
const subjectOf = async (text: string): Promise<SubjectToken> => ({
  text,
  hash: hashOf(text),
  introspection: await introspect(text),
})
/** Introspects a token as the gateway does. */
const introspect = async (text: string): Promise<Introspection> => ({
  ...(await introspector.introspect(text)),
  gateways: [gatewayUrl],
})
const issue = (fields: Partial<Introspection> = {}) => provider.issue('alice', fields)

describe('an OAuth server without token exchange: the gateway signs a statement', () => {
  test('it names the caller, the gateway as actor and the agent as audience, and is valid for a minute', async () => {
    const exchange = await start()
    const text = await exchange.forAgent(
      await subjectOf(issue({ sub: 'user-1', scope: 'agent:read' })),
      agent,
    )
    expect(decodeProtectedHeader(text)).toEqual({
      alg: 'EdDSA',
      typ: 'parley-statement+jwt',
      kid: expect.any(String),
    })
    const claims = decodeJwt(text)
    expect(claims).toEqual({
      iss: gatewayUrl,
      aud: agent.resource,
      client_id: 'alice',
      sub: 'user-1',
      scope: 'agent:read',
      act: { sub: gatewayUrl },
      iat: expect.any(Number),
      exp: expect.any(Number),
      sealed_subject: 'sealed 41',
    })
    const seconds = (claims.exp ?? 0) - (claims.iat ?? 0)
    expect(seconds).toBeGreaterThanOrEqual(58)
    expect(seconds).toBeLessThanOrEqual(60)
  })

  test('it never outlives the caller’s token', async () => {
    const exp = Math.floor(Date.now() / 1000) + 20
    expect(
      decodeJwt(await (await start()).forAgent(await subjectOf(issue({ exp })), agent)).exp,
    ).toBeLessThanOrEqual(exp)
  })

  test('a revoked token is refused at the next request, although the statement is cached', async () => {
    const exchange = await start()
    expect(exchange.endsWithSubject).toBe(false)
    const token = issue()
    const first = await exchange.forAgent(await subjectOf(token), agent)
    expect(await exchange.forAgent(await subjectOf(token), agent)).toBe(first)
    provider.revoke(token)
    await expect(exchange.forAgent(await subjectOf(token), agent)).rejects.toMatchObject({
      error: 'InvalidToken',
    })
  })

  test('it is signed again after half a minute', async () => {
    const exchange = await start()
    const token = issue()
    const first = await exchange.forAgent(await subjectOf(token), agent)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31_000 })
    expect(await exchange.forAgent(await subjectOf(token), agent)).not.toBe(first)
  })

  test.each<[string, Partial<Introspection>, object]>([
    ['expired', { exp: Date.now() / 1000 - 5 }, { error: 'TokenExpired', status: 401 }],
    ['unknown', { active: false }, { error: 'InvalidToken', status: 401 }],
    [
      'an operator’s',
      { scope: 'agent:read agent:admin' },
      { status: 403, data: { reason: 'operator_token' } },
    ],
    [
      'for another audience',
      { aud: 'https://b.example' },
      { status: 403, data: { reason: 'wrong_audience' } },
    ],
    ['without a scope of agents', { scope: 'email' }, { status: 403, data: { reason: 'no_scope' } }],
  ])('a token that is %s is refused', async (_what, fields, expected) => {
    const exchange = await start()
    await expect(exchange.forAgent(await subjectOf(issue(fields)), agent)).rejects.toMatchObject(expected)
  })

  test.each([gatewayUrl, agent.resource, agent.names[0] ?? ''])('a token for %s is accepted', async (aud) => {
    expect(await (await start()).forAgent(await subjectOf(issue({ aud })), agent)).toMatch(/^eyJ/)
  })

  test('an exchanged token is accepted for the gateway only', async () => {
    const exchange = await start()
    const act = { sub: 'did:key:other' }
    const attempt = exchange.forAgent(await subjectOf(issue({ act, aud: agent.resource })), agent)
    await expect(attempt).rejects.toMatchObject({ data: { reason: 'wrong_audience' } })
    expect(await exchange.forAgent(await subjectOf(issue({ act, aud: gatewayUrl })), agent)).toMatch(/^eyJ/)
  })

  test('it names the agents that act for the caller, so that an agent does not pass for its client', async () => {
    const exchange = await start()
    const act = { sub: 'did:key:other', act: { sub: 'https://client.example/metadata' } }
    const text = await exchange.forAgent(await subjectOf(issue({ act, aud: gatewayUrl })), agent)
    expect(decodeJwt(text)['act']).toEqual({ sub: gatewayUrl, act })
  })

  test('a client with an address as its id counts as an agent of the chain', async () => {
    const exchange = await start()
    const act = nestedActors(Array.from({ length: 6 }, (_, at) => `https://client${at}.example/metadata`))
    const fields = { aud: gatewayUrl, ...(act && { act }) }
    await expect(exchange.forAgent(await subjectOf(issue(fields)), agent)).rejects.toMatchObject({
      data: { reason: 'chain_too_long' },
    })
  })

  test('a chain of six agents is refused', async () => {
    const exchange = await start()
    const act = nestedActors(Array.from({ length: 6 }, (_, at) => `did:key:agent${at}`))
    const fields = { aud: gatewayUrl, ...(act && { act }) }
    await expect(exchange.forAgent(await subjectOf(issue(fields)), agent)).rejects.toMatchObject({
      data: { reason: 'chain_too_long' },
    })
  })

  test('an agent that acts for an operator gets no access to a ledger', async () => {
    const exchange = await start()
    const fields = { scope: 'agent:admin', act: { sub: 'did:key:other' }, aud: gatewayUrl }
    await expect(exchange.forLedger(await subjectOf(issue(fields)), agent)).rejects.toMatchObject({
      data: { reason: 'not_operator' },
    })
  })

  test.each<[string, Partial<Introspection>]>([
    ['no audience', {}],
    ['the audience of this agent only', { aud: [agent.resource, `${agent.names[0]}/`] }],
    ['another audience too', { aud: [agent.resource, gatewayUrl] }],
    ['a key to which it is bound', { aud: agent.resource, cnf: { jkt: 'key' } }],
  ])('an agent receives a statement for a token with %s', async (_what, fields) => {
    const exchange = await start()
    expect(await exchange.forAgent(await subjectOf(issue(fields)), agent)).toMatch(/^eyJ/)
  })

  test('an operator’s token leads to no statement, even if it names the agent', async () => {
    const exchange = await start()
    const token = issue({ aud: agent.resource, scope: 'agent:read agent:admin' })
    await expect(exchange.forAgent(await subjectOf(token), agent)).rejects.toMatchObject({
      data: { reason: 'operator_token' },
    })
  })

  describe('the ledger of an agent', () => {
    test('an operator’s token leads to a statement with the scope of the ledger only', async () => {
      const exchange = await start()
      const operator = await subjectOf(issue({ scope: 'agent:read agent:write agent:admin' }))
      expect(decodeJwt(await exchange.forLedger(operator, agent))).toMatchObject({
        scope: 'agent:ledger',
        aud: agent.resource,
      })
    })
    test('the operator’s token is not part of the statement', async () => {
      const operator = await subjectOf(issue({ scope: 'agent:admin' }))
      const claims = decodeJwt(await (await start()).forLedger(operator, agent))
      expect(claims).not.toHaveProperty('sealed_subject')
    })
    test.each<[string, Partial<Introspection>, object]>([
      ['without agent:admin', {}, { status: 403, data: { reason: 'not_operator' } }],
      ['that is not active', { active: false }, { error: 'InvalidToken' }],
      ['for another server', { scope: 'agent:admin', aud: 'https://b.example' }, { status: 403 }],
    ])('a token %s is refused', async (_what, fields, expected) => {
      const exchange = await start()
      await expect(exchange.forLedger(await subjectOf(issue(fields)), agent)).rejects.toMatchObject(expected)
    })
  })
})

describe('the keys of statements', () => {
  test('the file is private and survives a restart', async () => {
    const keysDir = path.join(folder.dir, 'keys')
    const first = await (await signer()).keys.keySet()
    const file = path.join(keysDir, 'statement-keys.json')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await (await signer()).keys.keySet()).toEqual(first)
    expect(await readFile(file, 'utf8')).not.toMatch(/"d"|Ed25519/)
    expect(first).toEqual({
      issuer: gatewayUrl,
      keys: [
        {
          kty: 'OKP',
          crv: 'Ed25519',
          x: expect.stringMatching(/^[\w-]{43}$/),
          kid: expect.any(String),
          use: 'sig',
          alg: 'EdDSA',
        },
      ],
    })
  })

  test('each gateway on a database publishes the keys of all, for a day after a gateway has stopped', async () => {
    const one = await signer(path.join(folder.dir, 'one'))
    const two = await signer(path.join(folder.dir, 'two'))
    const ids = async (from: StatementSigner) =>
      (await from.keys.keySet()).keys.map((key) => (key as { kid: string }).kid).sort()
    expect(await ids(one)).toHaveLength(2)
    expect(await ids(one)).toEqual(await ids(two))
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 86_401_000 })
    expect(await ids(one)).toHaveLength(1)
  })

  test('gateways that start at the same time do not remove each other’s keys', async () => {
    const all = await Promise.all(['a', 'b', 'c', 'd'].map((name) => signer(path.join(folder.dir, name))))
    expect((await all[0]?.keys.keySet())?.keys).toHaveLength(4)
  })

  test('an agent verifies the statement with them', async () => {
    const { keys } = await signer()
    const { createServer } = await import('node:http')
    const server = createServer((_request, response) => {
      void keys.keySet().then((set) => response.end(JSON.stringify(set)))
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('no port')
    open.unshift(() => server.close())
    const statement = await (await start()).forAgent(await subjectOf(issue()), agent)
    const verifier = new StatementVerifier(`http://127.0.0.1:${address.port}`)
    expect(await verifier.verify(statement)).toMatchObject({
      active: true,
      client_id: 'alice',
      aud: agent.resource,
    })
    server.closeAllConnections()
  })
})

describe('an OAuth server with token exchange (RFC 8693)', () => {
  /** Makes the provider issue tokens. `fields` override what the new token contains. */
  const offer = (fields: (subject: string) => Partial<Introspection> = () => ({})) => {
    const forms: URLSearchParams[] = []
    provider.metadata = { token_endpoint: `${provider.url}/token`, grant_types_supported: [grant] }
    provider.onTokenRequest = (form) => {
      forms.push(form)
      const aud = form.get('resource') ?? ''
      const scope = form.get('scope') ?? ''
      const body = {
        access_token: provider.issue('alice', { aud, scope, ...fields(aud) }),
        token_type: 'Bearer',
        issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        expires_in: 100,
      }
      return { status: 200, body }
    }
    return forms
  }
  /** Waits until the gateway has read the metadata. */
  const started = async () => {
    const exchange = await start()
    await new Promise((done) => setTimeout(done, 100))
    return exchange
  }

  test('the gateway exchanges at the token endpoint as its own client, and caches the token', async () => {
    const forms = offer()
    const exchange = await started()
    const token = issue({ scope: 'agent:read' })
    const text = await exchange.forAgent(await subjectOf(token), agent)
    expect(await introspector.introspect(text)).toMatchObject({
      active: true,
      client_id: 'alice',
      aud: agent.resource,
    })
    expect(Object.fromEntries(forms[0] ?? [])).toEqual({
      grant_type: grant,
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      resource: agent.resource,
      audience: agent.resource,
      scope: 'agent:read',
      client_id: 'gateway',
      client_secret: 'the gateway’s secret',
    })
    expect(await exchange.forAgent(await subjectOf(token), agent)).toBe(text)
    expect(forms).toHaveLength(1)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 81_000 })
    expect(await exchange.forAgent(await subjectOf(token), agent)).not.toBe(text)
  })

  test('a revoked token is refused at the next request, although the exchanged one is cached', async () => {
    offer()
    const exchange = await started()
    const token = issue()
    await exchange.forAgent(await subjectOf(token), agent)
    provider.revoke(token)
    await expect(exchange.forAgent(await subjectOf(token), agent)).rejects.toMatchObject({
      error: 'InvalidToken',
    })
  })

  test('a delegated token leads to a statement, because the server does not know it', async () => {
    const forms = offer()
    const exchange = await started()
    const act = { sub: 'did:key:other', act: { sub: gatewayUrl } }
    const subject = { ...(await subjectOf(issue({ act, aud: gatewayUrl }))), text: 'pdt_x', hash: 'x' }
    expect(decodeJwt(await exchange.forAgent(subject, agent))['act']).toEqual({ sub: gatewayUrl, act })
    expect(forms).toEqual([])
  })

  test.each<[string, Partial<Introspection>]>([
    ['for the gateway’s client instead of the caller’s', { client_id: 'gateway' }],
    ['for another subject', { sub: 'someone' }],
    ['with the gateway’s client as a delegate', { act: { sub: 'gateway' } }],
    ['with a client that has an address as its id as a delegate', { act: { sub: 'https://other.example' } }],
    ['for another audience', { aud: 'https://other.example' }],
    ['without an audience', { aud: undefined }],
    ['with more scopes', { scope: 'agent:read agent:write agent:admin' }],
    ['that is bound to a key', { cnf: { jkt: 'key' } }],
  ])('a token %s is not used: the gateway signs a statement', async (_what, fields) => {
    const forms = offer(() => fields)
    const exchange = await started()
    const token = await subjectOf(issue())
    expect(await exchange.forAgent(token, agent)).toMatch(/^eyJ/)
    expect(await exchange.forAgent(token, agent)).toMatch(/^eyJ/)
    // The provider is not requested again for a while.
    expect(forms).toHaveLength(1)
    expect(logged.filter((line) => line.includes('signs statements instead'))).toHaveLength(1)
  })

  test.each([
    ['a refusal', { status: 400, body: { error: 'invalid_target' } }],
    ['a response without a token', { status: 200, body: {} }],
    ['a token that is too long', { status: 200, body: { access_token: 'x'.repeat(9000) } }],
  ])('after %s, the gateway signs a statement', async (_what, answer) => {
    offer()
    provider.onTokenRequest = () => answer
    const exchange = await started()
    expect(await exchange.forAgent(await subjectOf(issue()), agent)).toMatch(/^eyJ/)
  })

  test.each([
    ['invalid_grant', 400],
    ['invalid_request', 400],
    ['invalid_scope', 400],
    ['access_denied', 403],
    ['something else', 400],
    [undefined, 429],
  ])('the error %j of one caller’s token (%s) does not concern other callers', async (error, status) => {
    const forms = offer()
    const issueToken = provider.onTokenRequest
    const refused = issue()
    provider.onTokenRequest = (form) =>
      form.get('subject_token') === refused
        ? { status, body: { error } }
        : (issueToken?.(form) ?? { status: 500, body: {} })
    const exchange = await started()
    for (let sent = 0; sent < 3; sent += 1)
      expect(await exchange.forAgent(await subjectOf(refused), agent)).toMatch(/^eyJ/)
    expect(await exchange.forAgent(await subjectOf(issue()), agent)).toMatch(/^test-/)
    expect(forms).toHaveLength(1)
    expect(logged.filter((line) => line.includes('does not exchange one caller’s token'))).toHaveLength(1)
    expect(logged.join()).not.toContain(refused)
  })

  test('a new token that is not active concerns its caller only', async () => {
    let active = false
    const forms = offer(() => ({ active }))
    const exchange = await started()
    const token = await subjectOf(issue())
    expect(await exchange.forAgent(token, agent)).toMatch(/^eyJ/)
    active = true
    expect(await exchange.forAgent(token, agent)).toMatch(/^eyJ/)
    expect(forms).toHaveLength(1)
    expect(await exchange.forAgent(await subjectOf(issue()), agent)).toMatch(/^test-/)
  })

  test('a new token that is bound to the key of the caller’s token concerns this caller only', async () => {
    let fields: Partial<Introspection> = { cnf: { jkt: 'key' } }
    offer(() => fields)
    const exchange = await started()
    expect(await exchange.forAgent(await subjectOf(issue({ cnf: { jkt: 'key' } })), agent)).toMatch(/^eyJ/)
    fields = {}
    expect(await exchange.forAgent(await subjectOf(issue()), agent)).toMatch(/^test-/)
  })

  test.each(['unsupported_grant_type', 'unauthorized_client', 'invalid_client', 'invalid_target'])(
    'after the error %s, the server is not requested for other callers either',
    async (error) => {
      offer()
      let requests = 0
      provider.onTokenRequest = () => {
        requests += 1
        return { status: 400, body: { error } }
      }
      const exchange = await started()
      for (let sent = 0; sent < 2; sent += 1)
        expect(await exchange.forAgent(await subjectOf(issue()), agent)).toMatch(/^eyJ/)
      expect(requests).toBe(1)
    },
  )

  test('a refusal for one agent does not concern the others', async () => {
    offer((aud) => (aud === agent.resource ? { client_id: 'gateway' } : {}))
    const exchange = await started()
    const token = await subjectOf(issue())
    expect(await exchange.forAgent(token, agent)).toMatch(/^eyJ/)
    expect(await exchange.forAgent(token, { id: 'b', resource: 'did:key:b' })).toMatch(/^test-/)
  })

  test('a server error is answered with 503', async () => {
    offer()
    provider.onTokenRequest = () => ({ status: 500, body: {} })
    const exchange = await started()
    await expect(exchange.forAgent(await subjectOf(issue()), agent)).rejects.toMatchObject({ status: 503 })
  })
})
