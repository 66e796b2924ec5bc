import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { Authenticator } from '@parley/kit/auth/authenticate'
import { HttpIntrospector, type Introspection, nestedActors } from '@parley/kit/auth/introspection'
import { decodeJwt } from 'jose'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SecretFiles } from '../../keys/secret-files.ts'
import { temporaryFolder, testMasters } from '../testing.ts'
import { DelegatedTokens } from './delegated-tokens.ts'
import { StatementKeys } from './statement-keys.ts'
import { StatementSigner } from './statements.ts'

const gatewayUrl = 'https://gateway.example'
const gatewayDid = 'did:web:gateway.example'
const agent = 'did:key:one'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let provider: TestIdentityProvider
let introspector: HttpIntrospector
let keys: StatementKeys
let signer: StatementSigner
let delegated: DelegatedTokens
/** The agents that may act, as `client audience`. */
let acting: Set<string>
/** Clients of agents that an operator has quarantined. */
let quarantined: Set<string>
const secretKey = randomBytes(32)

beforeEach(async () => {
  folder = await temporaryFolder()
  provider = await TestIdentityProvider.start()
  introspector = new HttpIntrospector({ url: provider.url, clientId: 'gateway', clientSecret: 's' })
  keys = await keysIn('keys')
  signer = new StatementSigner(keys)
  acting = new Set([`one ${agent}`, 'two did:key:two'])
  quarantined = new Set()
  delegated = gateway()
})
afterEach(async () => {
  vi.useRealTimers()
  keys[Symbol.dispose]()
  await introspector[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const keysIn = (name: string) =>
  StatementKeys.start({
    files: new SecretFiles(path.join(folder.dir, name), testMasters),
    issuer: gatewayUrl,
    claims: undefined,
    onFailure: () => {},
  })
const gateway = (key: Uint8Array = secretKey) =>
  new DelegatedTokens({
    introspector,
    statements: signer,
    secretKey: key,
    gatewayUrl,
    names: [gatewayUrl, gatewayDid],
    isQuarantined: (client) => quarantined.has(client),
    mayAct: (client, audience) =>
      [...acting].some((one) =>
        audience === undefined ? one.split(' ')[0] === client : one === `${client} ${audience}`,
      ),
  })

const scope = 'agent:read agent:write'
const issue = (fields: Partial<Introspection> = {}) => provider.issue('alice', fields)
const actor: Introspection = { active: true, client_id: 'one', scope }

interface StatementParts {
  token: string
  audience?: string
  actors?: string[]
  scope?: string
  sealedSubject?: string | undefined
}

/** A statement as the gateway signs it for a caller's token. */
async function statementFor({ token, audience = agent, actors = [gatewayUrl], ...more }: StatementParts) {
  const introspection = await introspector.introspect(token)
  const sealedSubject = 'sealedSubject' in more ? more.sealedSubject : delegated.sealSubject(token)
  return signer.sign({
    introspection: { ...introspection, scope: more.scope ?? scope },
    audience,
    actors,
    lifetimeSeconds: 60,
    sealedSubject,
  })
}
const exchange = async (statement: string, more: object = {}, by = delegated) =>
  by.exchange({ statement, actor, resource: gatewayUrl, ...more })
const later = (ms: number) => vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })

test('the new token is for the gateway, and names the caller and all parties that act for it', async () => {
  const token = issue({ sub: 'user-1', scope: 'agent:read agent:write openid' })
  const { text, ...answer } = await exchange(await statementFor({ token }))
  expect(answer).toEqual({ clientId: 'alice', scope, exp: expect.any(Number) })
  expect(await delegated.introspect(text)).toEqual({
    active: true,
    client_id: 'alice',
    sub: 'user-1',
    scope,
    exp: answer.exp,
    aud: gatewayUrl,
    act: { sub: 'one', act: { sub: gatewayUrl } },
    gateways: [gatewayUrl],
    token_type: 'Bearer',
  })
  expect(answer.exp - Date.now() / 1000).toBeLessThanOrEqual(300)
  const authenticator = new Authenticator(delegated, () => [gatewayUrl])
  const request = { headers: { authorization: `Bearer ${text}` }, method: 'POST', url: '/' }
  expect(await authenticator.authenticate(request)).toMatchObject({ subject: 'alice', delegate: 'one' })
})

test('neither the statement nor the new token contains the caller’s token in plaintext', async () => {
  const token = issue()
  const statement = await statementFor({ token })
  const { text } = await exchange(statement)
  const readable = [text, JSON.stringify(decodeJwt(statement))]
  readable.push(
    ...readable.map((one) => Buffer.from(one.replace('pdt_', ''), 'base64url').toString('latin1')),
  )
  for (const one of readable) expect(one).not.toContain(token)
})

test('the OAuth server is queried for each exchange and each use', async () => {
  const token = issue()
  const statement = await statementFor({ token })
  const before = provider.introspections
  const { text } = await exchange(statement)
  await delegated.introspect(text)
  await delegated.introspect(text)
  expect(provider.introspections - before).toBe(3)
})

test('a revoked token ends the statement and the tokens that were exchanged for it', async () => {
  const token = issue()
  const statement = await statementFor({ token })
  const { text } = await exchange(statement)
  provider.revoke(token)
  expect(await delegated.introspect(text)).toEqual({ active: false })
  await expect(exchange(statement)).rejects.toMatchObject({ reason: 'inactive' })
})

test('without the OAuth server, nothing is accepted', async () => {
  const statement = await statementFor({ token: issue() })
  const { text } = await exchange(statement)
  provider.fault = 'status 500'
  await expect(delegated.introspect(text)).rejects.toMatchObject({ status: 503 })
  await expect(exchange(statement)).rejects.toMatchObject({ status: 503 })
})

test('the agent may exchange the statement for a day, and the new token expires after five minutes', async () => {
  const token = issue({ exp: Date.now() / 1000 + 200_000 })
  const statement = await statementFor({ token })
  later(86_000_000)
  const { text, exp } = await exchange(statement)
  expect(await delegated.introspect(text)).toMatchObject({ active: true })
  later(301_000)
  expect(await delegated.introspect(text)).toEqual({ active: false, exp })
  later(500_000)
  await expect(exchange(statement)).rejects.toMatchObject({ reason: 'inactive' })
})

test('the new token never outlives the caller’s token', async () => {
  const exp = Math.floor(Date.now() / 1000) + 100
  const token = issue({ exp })
  const statement = await statementFor({ token })
  expect((await exchange(statement)).exp).toBe(exp)
  later(101_000)
  await expect(exchange(statement)).rejects.toMatchObject({ reason: 'expired' })
})

test('the scopes are those that the caller’s token, the statement, the agent and the request have in common', async () => {
  const statement = await statementFor({ token: issue() })
  const reader = { ...actor, scope: 'agent:read openid' }
  expect(await exchange(statement, { actor: reader })).toMatchObject({ scope: 'agent:read' })
  expect(await exchange(statement, { scope: 'agent:write' })).toMatchObject({ scope: 'agent:write' })
  const narrow = await statementFor({ token: issue(), scope: 'agent:read' })
  expect(await exchange(narrow)).toMatchObject({ scope: 'agent:read' })
  await expect(exchange(statement, { scope: 'agent:admin' })).rejects.toMatchObject({ reason: 'no_scope' })
  await expect(exchange(statement, { actor: { active: true, client_id: 'one' } })).rejects.toMatchObject({
    reason: 'no_scope',
  })
})

describe('a statement is refused', () => {
  const refusal = (reason: string) => ({ name: 'ExchangeRefused', reason })

  test('if it is for another agent', async () => {
    const statement = await statementFor({ token: issue(), audience: 'did:key:two' })
    await expect(exchange(statement)).rejects.toMatchObject(refusal('wrong_audience'))
  })
  test('if its agent may no longer act', async () => {
    const statement = await statementFor({ token: issue() })
    acting.delete(`one ${agent}`)
    await expect(exchange(statement)).rejects.toMatchObject(refusal('wrong_audience'))
  })
  test('if an earlier agent of the chain may no longer act', async () => {
    const statement = await statementFor({ token: issue(), actors: [gatewayUrl, 'two', gatewayUrl] })
    await exchange(statement)
    acting.delete('two did:key:two')
    await expect(exchange(statement)).rejects.toMatchObject(refusal('inactive'))
  })
  test('if the agent is in the chain, or is the caller', async () => {
    const statement = await statementFor({ token: issue(), actors: [gatewayUrl, 'one', gatewayUrl] })
    await expect(exchange(statement)).rejects.toMatchObject(refusal('already_in_chain'))
    const own = await statementFor({ token: provider.issue('one') })
    await expect(exchange(own)).rejects.toMatchObject(refusal('already_in_chain'))
  })
  test('if five agents act already', async () => {
    const agents = ['a', 'b', 'c', 'd', 'e']
    for (const name of agents) acting.add(`${name} did:key:${name}`)
    await exchange(await statementFor({ token: issue(), actors: [gatewayUrl, ...agents.slice(1)] }))
    await expect(
      exchange(await statementFor({ token: issue(), actors: [gatewayUrl, ...agents] })),
    ).rejects.toMatchObject(refusal('chain_too_long'))
  })
  test('if a client with the gateway’s address as its id sends it', async () => {
    acting.add(`${gatewayUrl} ${agent}`)
    const statement = await statementFor({ token: issue() })
    await expect(exchange(statement, { actor: { ...actor, client_id: gatewayUrl } })).rejects.toMatchObject(
      refusal('already_in_chain'),
    )
  })
  test('for another server than the gateway', async () => {
    const statement = await statementFor({ token: issue() })
    expect(await exchange(statement, { resource: gatewayDid })).toMatchObject({ clientId: 'alice' })
    await expect(exchange(statement, { resource: 'did:key:two' })).rejects.toMatchObject(refusal('resource'))
  })
  test('if its caller has become an operator', async () => {
    const statement = await statementFor({ token: issue({ scope: `${scope} agent:admin` }) })
    await expect(exchange(statement)).rejects.toMatchObject(refusal('operator_token'))
  })
  test('if it contains no token of the caller, as for a ledger', async () => {
    const statement = await statementFor({ token: issue(), sealedSubject: undefined })
    await expect(exchange(statement)).rejects.toMatchObject(refusal('too_large'))
  })
  test('if it contains the token of another caller', async () => {
    const sealedSubject = delegated.sealSubject(provider.issue('mallory'))
    await expect(exchange(await statementFor({ token: issue(), sealedSubject }))).rejects.toMatchObject(
      refusal('inactive'),
    )
  })
  test('if another deployment encrypted the token', async () => {
    const sealedSubject = gateway(randomBytes(32)).sealSubject(issue())
    await expect(exchange(await statementFor({ token: issue(), sealedSubject }))).rejects.toMatchObject(
      refusal('inactive'),
    )
  })
  test('if another deployment signed it, or it was changed', async () => {
    using otherKeys = await keysIn('other')
    const other = new StatementSigner(otherKeys)
    const introspection = await introspector.introspect(issue())
    const parts = { audience: agent, actors: [gatewayUrl], lifetimeSeconds: 60 }
    await expect(exchange(await other.sign({ introspection, ...parts }))).rejects.toMatchObject(
      refusal('inactive'),
    )
    const statement = await statementFor({ token: issue() })
    await expect(exchange(`${statement.slice(0, -4)}AAAA`)).rejects.toMatchObject(refusal('inactive'))
    await expect(exchange('eyJ.eyJ.x')).rejects.toMatchObject(refusal('inactive'))
    await expect(exchange('')).rejects.toMatchObject(refusal('inactive'))
  })
})

describe('a delegated token is not active', () => {
  test('if its agent, or an earlier one, may no longer act', async () => {
    acting.add('two did:key:other')
    const token = issue()
    const { text } = await exchange(await statementFor({ token, actors: [gatewayUrl, 'two', gatewayUrl] }))
    expect(await delegated.introspect(text)).toMatchObject({ active: true })
    acting.delete(`one ${agent}`)
    acting.add('one did:key:second agent of the client')
    expect(await delegated.introspect(text)).toEqual({ active: false })
    acting.add(`one ${agent}`)
    acting.delete('two did:key:two')
    acting.delete('two did:key:other')
    expect(await delegated.introspect(text)).toEqual({ active: false })
  })
  test.each<[string, Partial<Introspection>]>([
    ['is no longer active', { active: false }],
    ['has expired', { exp: Date.now() / 1000 - 1 }],
    ['names another client', { client_id: 'mallory' }],
    ['names another subject', { sub: 'mallory' }],
  ])('if the caller’s token %s', async (_what, fields) => {
    const token = issue({ sub: 'alice' })
    const statement = await statementFor({ token })
    const { text } = await exchange(statement)
    provider.change(token, fields)
    expect(await delegated.introspect(text)).toMatchObject({ active: false })
    await expect(exchange(statement)).rejects.toMatchObject({ name: 'ExchangeRefused' })
  })
  test('if it was changed, or sealed with another key', async () => {
    const { text } = await exchange(await statementFor({ token: issue() }))
    expect(await delegated.introspect(`${text.slice(0, -4)}AAAA`)).toEqual({ active: false })
    expect(await delegated.introspect('pdt_')).toEqual({ active: false })
    expect(await gateway(randomBytes(32)).introspect(text)).toEqual({ active: false })
    expect(await gateway().introspect(text)).toMatchObject({ active: true })
  })
  test('at the OAuth server, so that agents refuse it', async () => {
    const { text } = await exchange(await statementFor({ token: issue() }))
    expect(await introspector.introspect(text)).toEqual({ active: false })
  })
  test('if it is a sealed subject with the prefix of a delegated token', async () => {
    const sealed = delegated.sealSubject(issue()) ?? ''
    expect(await delegated.introspect(`pdt_${sealed}`)).toEqual({ active: false })
  })
})

test('the scopes of a delegated token follow those of the caller’s token', async () => {
  const fields: Partial<Introspection> = { scope }
  const token = issue(fields)
  const { text } = await exchange(await statementFor({ token }))
  provider.change(token, { scope: 'agent:read' })
  expect(await delegated.introspect(text)).toMatchObject({ active: true, scope: 'agent:read' })
})

test('the statement for the next agent contains the caller’s token, not the delegated one', async () => {
  const token = issue()
  const { text } = await exchange(await statementFor({ token }))
  const next = await statementFor({
    token,
    audience: 'did:key:two',
    actors: [gatewayUrl, 'one', gatewayUrl],
    sealedSubject: delegated.sealSubject(text),
  })
  const second = await exchange(next, { actor: { ...actor, client_id: 'two' } })
  expect(await delegated.introspect(second.text)).toMatchObject({
    act: nestedActors(['two', gatewayUrl, 'one', gatewayUrl]),
  })
  provider.revoke(token)
  expect(await delegated.introspect(second.text)).toEqual({ active: false })
})

test('parties that the OAuth server names in the caller’s token need no agent, and must stay the same', async () => {
  const token = issue({ act: { sub: 'https://client.example/metadata' }, aud: gatewayUrl })
  const statement = await statementFor({ token, actors: [gatewayUrl, 'https://client.example/metadata'] })
  const { text } = await exchange(statement)
  expect(await delegated.introspect(text)).toMatchObject({ active: true })
  provider.change(token, { act: { sub: 'other' } })
  expect(await delegated.introspect(text)).toEqual({ active: false })
  await expect(exchange(statement)).rejects.toMatchObject({ reason: 'inactive' })
})

test('a token of 5120 characters can be exchanged, and a longer one leads to a statement without it', async () => {
  const token = issue()
  const long = 'x'.repeat(5120)
  provider.rename(token, long)
  const { text } = await exchange(await statementFor({ token: long }))
  expect(text.length).toBeLessThan(12_288)
  expect(delegated.sealSubject(`${long}x`)).toBeUndefined()
})

test('a token of the OAuth server that names a quarantined agent as an actor is not active, at the first and at each further step', async () => {
  const token = issue({ act: { sub: 'two', act: { sub: 'three' } }, aud: gatewayUrl })
  const statement = await statementFor({ token, actors: [gatewayUrl, 'two', 'three'] })
  const { text } = await exchange(statement)
  expect(await delegated.introspect(token)).toMatchObject({ active: true })
  quarantined.add('three')
  expect(await delegated.introspect(token)).toEqual({ active: false })
  expect(await delegated.introspect(text)).toEqual({ active: false })
  await expect(exchange(statement)).rejects.toMatchObject({ reason: 'inactive' })
})

test('only the gateway itself counts as a gateway in a token of the OAuth server', async () => {
  const authenticator = new Authenticator(delegated, () => [gatewayUrl])
  const callerOf = (act: Introspection['act']) =>
    authenticator.authenticate({
      headers: { authorization: `Bearer ${issue({ act, aud: gatewayUrl })}` },
      method: 'POST',
      url: '/',
    })
  const client = 'https://client.example/metadata.json'
  expect(await callerOf({ sub: client })).toMatchObject({ subject: 'alice', delegate: client })
  expect((await callerOf({ sub: client })).id).not.toBe('alice')
  expect(await callerOf({ sub: gatewayUrl })).not.toHaveProperty('delegate')
})
