import { createHash } from 'node:crypto'
import * as oauth from 'openid-client'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  type Answer,
  basic,
  type Credentials,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from '../testing.ts'

const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const gatewayUrl = 'https://gateway.example'
const agentUrl = 'https://gateway.example/agents/planner'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let alice: Credentials
/** Clients of agents that the gateway runs. */
let planner: Credentials
let writer: Credentials
const trusted = new Set<string>()
const barred = new Set<string>()

const agent = (clientId: string) =>
  server.provider.ensureClient({
    clientId,
    clientName: clientId,
    scope: 'agent:read agent:write',
    introspection: true,
  })

beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({
    ...folder,
    agents: {
      isTrusted: (clientId) => trusted.has(clientId),
      isBarred: (clientId) => barred.has(clientId),
      namesOf: (clientId) => (clientId === 'did:key:planner' ? [agentUrl] : []),
    },
  })
  alice = await server.provider.ensureClient({
    clientId: 'alice',
    clientName: 'Alice',
    scope: 'agent:read agent:write agent:execute agent:admin',
  })
  planner = await agent('did:key:planner')
  writer = await agent('did:key:writer')
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})
afterEach(() => void vi.useRealTimers())

const later = (seconds: number) => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + seconds * 1000 })
}
const aliceToken = (form: Record<string, string> = {}) =>
  server.token(alice, { scope: 'agent:read agent:write', ...form })
const formOf = (subject: string, more: Record<string, string> = {}) => ({
  grant_type: grantType,
  subject_token: subject,
  subject_token_type: accessToken,
  resource: gatewayUrl,
  ...more,
})
const attempt = (as: Credentials, subject: string, more: Record<string, string> = {}): Promise<Answer> =>
  server.post('/oauth2/token', formOf(subject, more), as)
async function exchanged(
  as: Credentials,
  subject: string,
  more: Record<string, string> = {},
): Promise<string> {
  const { body, text } = await attempt(as, subject, more)
  if (typeof body['access_token'] !== 'string') throw new Error(text)
  return body['access_token']
}
const introspect = async (token: string) => (await server.post('/oauth2/introspect', { token }, planner)).body
const audited = (action: string) =>
  server
    .logged()
    .split('\n')
    .filter((line) => line.includes('"audit":true') && line.includes(`"${action}"`))
    .map((line): unknown => JSON.parse(line))

describe('the token exchange grant (RFC 8693)', () => {
  test('an agent exchanges its caller’s token for one that acts for the caller', async () => {
    const { status, body, headers } = await attempt(planner, await aliceToken(), { scope: 'agent:read' })
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        access_token: expect.stringMatching(/^pxt_/),
        issued_token_type: accessToken,
        token_type: 'Bearer',
        expires_in: expect.toSatisfy((seconds: number) => seconds > 290 && seconds <= 300),
        scope: 'agent:read',
      },
    })
    expect(headers.get('cache-control')).toBe('no-store')
    expect(await introspect(String(body['access_token']))).toMatchObject({
      active: true,
      client_id: 'alice',
      sub: 'alice',
      scope: 'agent:read',
      aud: gatewayUrl,
      act: { sub: 'did:key:planner' },
    })
  })

  test('openid-client performs it unmodified', async () => {
    const config = await oauth.discovery(
      new URL(`${server.origin}/oauth2`),
      planner.clientId,
      undefined,
      oauth.ClientSecretBasic(planner.clientSecret),
      { algorithm: 'oauth2', execute: [oauth.allowInsecureRequests] },
    )
    expect(config.serverMetadata().grant_types_supported).toContain(grantType)
    const { grant_type: _, ...form } = formOf(await aliceToken())
    const response = await oauth.genericGrantRequest(config, grantType, form)
    expect(response).toMatchObject({ token_type: 'bearer', issued_token_type: accessToken })
    expect(await oauth.tokenIntrospection(config, response.access_token)).toMatchObject({
      active: true,
      client_id: 'alice',
      act: { sub: 'did:key:planner' },
    })
  })

  test('`audience` is accepted in place of `resource`, or with the same value', async () => {
    for (const form of [{ resource: '', audience: gatewayUrl }, { audience: gatewayUrl }])
      expect((await introspect(await exchanged(planner, await aliceToken(), form)))['aud']).toBe(gatewayUrl)
  })

  test('an exchange and a refusal are audited without the tokens', async () => {
    const token = await aliceToken()
    const made = await exchanged(planner, token, { resource: 'https://audited.example' })
    await attempt(planner, 'no-such-token')
    expect(audited('oauth.exchange')).toContainEqual(
      expect.objectContaining({
        who: 'did:key:planner',
        target: 'https://audited.example',
        allowed: true,
        reason: 'for alice: agent:read agent:write',
        address: '127.0.0.1',
      }),
    )
    expect(audited('oauth.grant')).toContainEqual(
      expect.objectContaining({ who: 'did:key:planner', allowed: false }),
    )
    for (const secret of [token, made]) expect(server.logged()).not.toContain(secret)
  })

  test('an actor token of the same client is accepted', async () => {
    const actor = await server.token(planner, { scope: 'agent:write' })
    const more = { actor_token: actor, actor_token_type: accessToken }
    expect(await introspect(await exchanged(planner, await aliceToken(), more))).toMatchObject({
      act: { sub: 'did:key:planner' },
    })
  })
})

describe('DPoP (RFC 9449)', () => {
  const as = ({ clientId, clientSecret }: Credentials) =>
    oauth.discovery(
      new URL(`${server.origin}/oauth2`),
      clientId,
      undefined,
      oauth.ClientSecretBasic(clientSecret),
      { algorithm: 'oauth2', execute: [oauth.allowInsecureRequests] },
    )

  test('a token that is requested with a proof is bound to the key of the proof', async () => {
    const config = await as(planner)
    const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair())
    const { grant_type: _, ...form } = formOf(await aliceToken())
    const token = await oauth.genericGrantRequest(config, grantType, form, { DPoP })
    expect(token.token_type).toBe('dpop')
    expect(await introspect(token.access_token)).toMatchObject({
      active: true,
      client_id: 'alice',
      token_type: 'DPoP',
      cnf: { jkt: await DPoP.calculateThumbprint() },
    })
  })

  test('a client whose tokens are all bound to a key exchanges with a proof only', async () => {
    const stored = await server.store.find('Client', writer.clientId)
    const payload = { ...stored, dpop_bound_access_tokens: true }
    await server.store.upsert({ model: 'Client', id: writer.clientId, payload })
    expect((await attempt(writer, await aliceToken())).body).toEqual({
      error: 'invalid_dpop_proof',
      error_description: expect.stringContaining('send a DPoP proof'),
    })
    const config = await as(writer)
    const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair())
    const { grant_type: _, ...form } = formOf(await aliceToken())
    const token = await oauth.genericGrantRequest(config, grantType, form, { DPoP })
    expect(token.token_type).toBe('dpop')
    await server.store.upsert({ model: 'Client', id: writer.clientId, payload: stored ?? {} })
  })

  test('a caller’s token that is bound to a key is exchanged by the gateway, and by no agent', async () => {
    const config = await as(alice)
    const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair())
    const { access_token: bound } = await oauth.clientCredentialsGrant(
      config,
      { scope: 'agent:read' },
      { DPoP },
    )
    expect((await attempt(planner, bound)).body).toEqual({
      error: 'invalid_request',
      error_description: expect.stringContaining('bound to a key (DPoP)'),
    })
    const { exchanger } = server.provider
    const request = { subject: bound, actor: gatewayUrl, names: [gatewayUrl], resource: 'did:key:planner' }
    const answer = await server.provider.introspect((await exchanger.exchange(request)).text)
    expect(answer).toMatchObject({ active: true, client_id: 'alice', token_type: 'Bearer' })
    expect(answer.cnf).toBeUndefined()
  })

  test.each(['nonsense', 'a.b.c'])('the proof %s is refused', async (proof) => {
    const { status, body } = await server.fetch('/oauth2/token', {
      method: 'POST',
      headers: { authorization: basic(planner), dpop: proof },
      body: new URLSearchParams(formOf(await aliceToken())),
    })
    expect({ status, error: body['error'] }).toEqual({ status: 400, error: 'invalid_dpop_proof' })
  })
})

describe('operators’ settings', () => {
  test('a token of a disabled client is not exchanged, and its exchanged tokens are not active', async () => {
    const root = await aliceToken()
    const token = await exchanged(planner, root)
    await server.store.upsert({ model: 'ClientSettings', id: 'alice', payload: { disabled: true } })
    expect(await introspect(token)).toEqual({ active: false })
    expect((await attempt(planner, root)).body['error']).toBe('invalid_request')
    await server.store.destroy('ClientSettings', 'alice')
  })

  test('an agent whose client is disabled can no longer act', async () => {
    const token = await exchanged(writer, await aliceToken())
    await server.store.upsert({ model: 'ClientSettings', id: 'did:key:writer', payload: { disabled: true } })
    expect(await introspect(token)).toEqual({ active: false })
    await server.store.destroy('ClientSettings', 'did:key:writer')
  })

  test('a token of an agent whose client will end is not active for longer', async () => {
    const token = await exchanged(writer, await aliceToken())
    const expiresAt = Math.floor(Date.now() / 1000) + 30
    await server.store.upsert({ model: 'ClientSettings', id: 'did:key:writer', payload: { expiresAt } })
    expect(await introspect(token)).toMatchObject({ active: true, exp: expiresAt })
    await server.store.destroy('ClientSettings', 'did:key:writer')
  })

  test('an agent exchanges for the resources that the operator allows it only', async () => {
    const resources = ['https://allowed.example']
    await server.store.upsert({ model: 'ClientSettings', id: 'did:key:writer', payload: { resources } })
    const refused = await attempt(writer, await aliceToken())
    expect(refused.body['error']).toBe('invalid_target')
    const allowed = await attempt(writer, await aliceToken(), { resource: 'https://allowed.example' })
    expect(allowed.status).toBe(200)
    await server.store.destroy('ClientSettings', 'did:key:writer')
  })
})

describe('who may exchange', () => {
  test('a client that is not an agent is refused', async () => {
    const { clientId, clientSecret } = await server.provider.ensureClient({
      clientId: 'plain',
      clientName: 'Plain',
      scope: 'agent:read agent:write',
    })
    const { status, body } = await attempt({ clientId, clientSecret }, await aliceToken())
    expect({ status, body }).toEqual({
      status: 400,
      body: {
        error: 'unauthorized_client',
        error_description: expect.stringContaining('ask the operator to admit its agent'),
      },
    })
  })

  test('a self-registered client may exchange while its agent is admitted', async () => {
    const { body } = await server.register({ client_name: 'x', grant_types: ['client_credentials'] })
    const external = { clientId: String(body['client_id']), clientSecret: String(body['client_secret']) }
    expect((await attempt(external, await aliceToken())).body['error']).toBe('unauthorized_client')
    trusted.add(external.clientId)
    const token = await exchanged(external, await aliceToken())
    expect(await introspect(token)).toMatchObject({ active: true })
    trusted.delete(external.clientId)
    expect(await introspect(token)).toEqual({ active: false })
  })

  test('an agent that the gateway runs can no longer act while an operator has quarantined it', async () => {
    const token = await exchanged(writer, await aliceToken())
    barred.add(writer.clientId)
    expect(await introspect(token)).toEqual({ active: false })
    expect((await attempt(writer, await aliceToken())).body['error']).toBe('unauthorized_client')
    barred.delete(writer.clientId)
    expect(await introspect(token)).toMatchObject({ active: true })
  })

  test('a client that an operator has tagged may exchange, until the tag is removed', async () => {
    const tagged = await server.provider.ensureClient({
      clientId: 'tagged',
      clientName: 'Tagged',
      scope: 'agent:read',
    })
    expect((await attempt(tagged, await aliceToken())).body['error']).toBe('unauthorized_client')
    await server.provider.clients.tag('tagged', ['token-exchange'])
    const token = await exchanged(tagged, await aliceToken())
    // The client's own scopes limit the token.
    expect(await introspect(token)).toMatchObject({
      active: true,
      scope: 'agent:read',
      act: { sub: 'tagged' },
    })
    await server.provider.clients.tag('tagged', [])
    expect(await introspect(token)).toEqual({ active: false })
  })

  test('a client that registered the grant is refused all the same', async () => {
    const { status, body } = await server.register({ client_name: 'x', grant_types: [grantType] })
    expect(status).toBe(201)
    const client = { clientId: String(body['client_id']), clientSecret: String(body['client_secret']) }
    expect((await attempt(client, await aliceToken())).body['error']).toBe('unauthorized_client')
  })

  test('a client without authentication is refused', async () => {
    const { body } = await server.register({
      client_name: 'x',
      grant_types: ['authorization_code'],
      redirect_uris: ['https://app.example/cb'],
      token_endpoint_auth_method: 'none',
    })
    const clientId = String(body['client_id'])
    trusted.add(clientId)
    const form = { ...formOf(await aliceToken()), client_id: clientId }
    const answer = await server.post('/oauth2/token', form)
    expect(answer.body).toEqual({
      error: 'unauthorized_client',
      error_description: 'token exchange requires client authentication',
    })
  })

  test('a client whose id looks like a gateway is refused', async () => {
    const { body } = await attempt(await agent('https://gateway.example'), await aliceToken())
    expect(body['error']).toBe('unauthorized_client')
  })

  test('a wrong client secret is refused', async () => {
    const { status } = await attempt({ ...planner, clientSecret: 'wrong-wrong-wrong' }, await aliceToken())
    expect(status).toBe(401)
  })
})

describe('which token may be exchanged', () => {
  test.each(['did:key:planner', agentUrl, `${agentUrl}/`])(
    'a token for the agent, named as %s',
    async (resource) => {
      const token = await exchanged(planner, await aliceToken({ resource }))
      expect(await introspect(token)).toMatchObject({ active: true, aud: gatewayUrl })
    },
  )

  test.each([
    ['of another agent', { resource: 'did:key:writer' }],
    ['of the gateway', { resource: gatewayUrl }],
    ['below the agent', { resource: `${agentUrl}/x` }],
  ])('a token with the audience %s is refused', async (_what, audience) => {
    const { status, body } = await attempt(planner, await aliceToken(audience))
    expect({ status, body }).toEqual({
      status: 400,
      body: {
        error: 'invalid_request',
        error_description: `The token is for ${audience.resource}: get a token without an audience or for did:key:planner`,
      },
    })
  })

  test('an expired or revoked token of a client is refused', async () => {
    const [expired, revoked] = [await aliceToken(), await aliceToken()]
    await server.post('/oauth2/revoke', { token: revoked }, alice)
    expect((await attempt(planner, revoked)).body).toEqual({
      error: 'invalid_request',
      error_description: 'The token is not active: get a new one',
    })
    later(3601)
    expect((await attempt(planner, expired)).body).toEqual({
      error: 'invalid_request',
      error_description: 'The token has expired: get a new one',
    })
  })

  test('the agent’s own token is refused', async () => {
    const { body } = await attempt(planner, await server.token(planner))
    expect(body).toEqual({
      error: 'invalid_request',
      error_description: expect.stringContaining('already a party'),
    })
  })

  test('an operator’s token is refused, even for a smaller scope', async () => {
    const token = await aliceToken({ scope: 'agent:read agent:admin' })
    for (const more of [{}, { scope: 'agent:read' }, { scope: 'agent:admin' }])
      expect((await attempt(planner, token, more)).body).toMatchObject({
        error: 'invalid_scope',
        error_description: expect.stringContaining('agent:admin is not exchanged'),
      })
  })
})

describe('scope', () => {
  const scopeOf = async (held: string, requested?: string) => {
    const token = await aliceToken({ scope: held })
    const { body } = await attempt(planner, token, requested === undefined ? {} : { scope: requested })
    return body['scope'] ?? body['error']
  }
  test.each([
    ['agent:read agent:write', undefined, 'agent:read agent:write'],
    ['agent:read', undefined, 'agent:read'],
    ['agent:read', 'agent:read agent:write', 'agent:read'],
    ['agent:read', 'agent:write', 'invalid_scope'],
    ['agent:read', 'agent:admin', 'invalid_scope'],
    ['agent:read agent:write', 'agent:read agent:admin', 'agent:read'],
    ['agent:execute', 'agent:read', 'agent:read'],
    // The agent's own client does not have agent:execute.
    ['agent:execute', undefined, 'agent:read agent:write'],
    ['agent:read', 'nonsense', 'invalid_scope'],
  ])('of a token with %o, the request for %o obtains %o', async (held, requested, expected) => {
    expect(await scopeOf(held, requested)).toBe(expected)
  })
})

describe('the chain of agents', () => {
  test('each agent adds itself as the actor, and ends at five', async () => {
    let token = await aliceToken()
    let audience: string | undefined
    for (let n = 1; n <= 5; n += 1) {
      const current = await agent(`did:key:a${n}`)
      audience = `did:key:a${n + 1}`
      token = await exchanged(current, token, { resource: audience })
    }
    const { act } = await introspect(token)
    expect(act).toEqual({
      sub: 'did:key:a5',
      act: {
        sub: 'did:key:a4',
        act: { sub: 'did:key:a3', act: { sub: 'did:key:a2', act: { sub: 'did:key:a1' } } },
      },
    })
    const { body } = await attempt(await agent('did:key:a6'), token)
    expect(body).toEqual({
      error: 'invalid_request',
      error_description: 'At most 5 agents may act for a client one after another',
    })
  })

  test('an agent that is already in the chain is refused', async () => {
    const first = await exchanged(planner, await aliceToken(), { resource: 'did:key:writer' })
    const second = await exchanged(writer, first, { resource: 'did:key:planner' })
    expect((await attempt(planner, second)).body).toEqual({
      error: 'invalid_request',
      error_description: expect.stringContaining('did:key:planner is already a party of this token'),
    })
  })

  test('an agent whose client is deleted or loses its rights can no longer act', async () => {
    const gone = await agent('did:key:gone')
    const token = await exchanged(gone, await aliceToken())
    expect(await introspect(token)).toMatchObject({ active: true })
    await server.store.destroy('Client', gone.clientId)
    expect(await introspect(token)).toEqual({ active: false })
  })

  test('an agent whose task takes longer renews its token for a day while the client’s token is active', async () => {
    const root = await aliceToken()
    const token = await exchanged(planner, root, { resource: 'did:key:writer' })
    later(400)
    expect(await introspect(token)).toMatchObject({ active: false, exp: expect.any(Number) })
    const renewed = await exchanged(writer, token)
    expect(await introspect(renewed)).toMatchObject({
      active: true,
      act: { sub: 'did:key:writer', act: { sub: 'did:key:planner' } },
    })
    // Only the agent for which the token is may renew it.
    const other = await attempt(await agent('did:key:other'), token)
    expect(other.body['error_description']).toBe('The token has expired: get a new one')
    await server.post('/oauth2/revoke', { token: root }, alice)
    expect((await attempt(writer, token)).body['error_description']).toBe(
      'The token is not active: get a new one',
    )
    expect(await introspect(renewed)).toEqual({ active: false })
  })
})

test('after a day, an expired token is no longer renewed', async () => {
  // The record of a token that is valid for three days.
  const [root, id] = ['r'.repeat(43), createHash('sha256').update('r'.repeat(43)).digest('base64url')]
  const now = Math.floor(Date.now() / 1000)
  const payload = { clientId: 'alice', exp: now + 3 * 86_400, scope: 'agent:read' }
  await server.store.upsert({ model: 'ClientCredentials', id, payload })
  const token = await exchanged(planner, root, { resource: 'did:key:writer' })
  later(300 + 86_400 - 60)
  expect(await introspect(await exchanged(writer, token))).toMatchObject({ active: true })
  later(60)
  expect((await attempt(writer, token)).body['error_description']).toBe(
    'The token has expired: get a new one',
  )
})

describe('revocation (RFC 7009)', () => {
  const chain = async () => {
    const root = await aliceToken()
    const child = await exchanged(planner, root, { resource: 'did:key:writer' })
    return { root, child, grandchild: await exchanged(writer, child) }
  }
  const isActive = async (token: string) => (await introspect(token))['active']
  const revoke = (token: string, as: Credentials) => server.post('/oauth2/revoke', { token }, as)

  test.each([
    ['the acting client', () => planner],
    ['the client for which it acts', () => alice],
  ])('%s revokes a token and its children, but not its parent', async (_who, as) => {
    const { root, child, grandchild } = await chain()
    const { status, text } = await revoke(child, as())
    expect([status, text]).toEqual([200, ''])
    expect(await Promise.all([root, child, grandchild].map(isActive))).toEqual([true, false, false])
    expect((await attempt(writer, child)).body['error']).toBe('invalid_request')
  })

  test('a token that has expired can still be revoked, so that it cannot be renewed', async () => {
    const { child } = await chain()
    later(400)
    await revoke(child, planner)
    expect((await attempt(writer, child)).body['error_description']).toBe(
      'The token is not active: get a new one',
    )
  })

  test('another client revokes nothing', async () => {
    const { child, grandchild } = await chain()
    const other = await agent('did:key:bystander')
    expect((await revoke(child, other)).status).toBe(200)
    expect((await revoke(child, writer)).status).toBe(200)
    expect(await Promise.all([child, grandchild].map(isActive))).toEqual([true, true])
  })

  test('the caller’s token and everything exchanged from it end together', async () => {
    const { root, child, grandchild } = await chain()
    await revoke(root, alice)
    expect(await Promise.all([root, child, grandchild].map(isActive))).toEqual([false, false, false])
  })

  test('the removal of the client’s tokens ends the exchanged ones', async () => {
    const { child, grandchild } = await chain()
    await server.store.revokeByClientId('alice')
    expect(await Promise.all([child, grandchild].map(isActive))).toEqual([false, false])
  })

  test('the records of revocations are removed after the root token has ended', async () => {
    const { child } = await chain()
    await revoke(child, planner)
    const jti = (await server.provider.introspectWithTags(child)).tags[0]?.slice(2) ?? ''
    expect(await server.store.find('RevokedExchange', jti)).toBeDefined()
    later(3600 + 3700)
    await server.provider.sweep()
    expect(await server.store.find('RevokedExchange', jti)).toBeUndefined()
  })

  test('a failing store is not answered with success', async () => {
    const { child } = await chain()
    vi.spyOn(server.store, 'upsert').mockRejectedValueOnce(new Error('disk full'))
    const { status, body } = await revoke(child, planner)
    expect({ status, error: body['error'] }).toEqual({ status: 500, error: 'server_error' })
    expect(await isActive(child)).toBe(true)
  })

  test('a revocation is audited', async () => {
    const { child } = await chain()
    await revoke(child, planner)
    expect(audited('oauth.revoke-exchanged')).toContainEqual(
      expect.objectContaining({ who: 'did:key:planner', allowed: true }),
    )
  })
})

describe('bad requests', () => {
  const bad = async (more: Record<string, string>, subject?: string) => {
    const { status, body } = await attempt(planner, subject ?? (await aliceToken()), more)
    expect(status).toBe(400)
    return `${String(body['error'])}: ${String(body['error_description'])}`
  }
  const jwtType = 'urn:ietf:params:oauth:token-type:jwt'

  test.each([
    [{ subject_token: '' }, 'invalid_request: subject_token is missing'],
    [{ subject_token_type: jwtType }, `invalid_request: subject_token_type must be ${accessToken}`],
    [{ subject_token_type: '' }, `invalid_request: subject_token_type must be ${accessToken}`],
    [{ requested_token_type: jwtType }, `invalid_request: requested_token_type must be ${accessToken}`],
    [{ actor_token_type: accessToken }, 'invalid_request: actor_token_type requires an actor_token'],
    [{ subject_token: 'x'.repeat(9000) }, 'invalid_request: subject_token is too long'],
    [{ subject_token: 'pxt_AAAA' }, 'invalid_request: The token is not active: get a new one'],
    [{ subject_token: '😀\u0000' }, 'invalid_request: The token is not active: get a new one'],
    [
      { resource: '' },
      'invalid_target: request exactly one resource: the address or DID of the server to call',
    ],
    [
      { audience: 'https://b.example' },
      'invalid_target: request exactly one resource: the address or DID of the server to call',
    ],
    [{ resource: 'nonsense' }, 'invalid_target: resource must be an http, https or did address'],
    [{ resource: 'javascript:alert(1)' }, 'invalid_target: resource must be an http, https or did address'],
    [
      { resource: `https://b.example/${'x'.repeat(3000)}` },
      'invalid_target: resource must be an http, https or did address',
    ],
    [{ scope: 'a\u0007' }, 'invalid_scope: scope contains invalid characters'],
  ])('%o', async (more, expected) => {
    expect(await bad(more)).toBe(expected)
  })

  test.each(['subject_token', 'subject_token_type', 'scope', 'actor_token', 'requested_token_type'])(
    '%s twice',
    async (name) => {
      const form = Object.entries(formOf(await aliceToken()))
      const { status, body } = await server.post(
        '/oauth2/token',
        [...form.filter(([key]) => key !== name), [name, accessToken], [name, accessToken]],
        planner,
      )
      expect({ status, body }).toEqual({
        status: 400,
        body: {
          error: 'invalid_request',
          error_description: `'${name}' parameter must not be provided twice`,
        },
      })
    },
  )

  test('several resources', async () => {
    const form = Object.entries(formOf(await aliceToken()))
    const { status, body } = await server.post(
      '/oauth2/token',
      [...form, ['resource', 'https://b.example']],
      planner,
    )
    expect({ status, error: body['error'] }).toEqual({ status: 400, error: 'invalid_target' })
  })

  test('a large resource with a long chain does not make a token that is too large', async () => {
    const resource = `https://b.example/${'x'.repeat(2000)}`
    expect((await exchanged(planner, await aliceToken(), { resource })).length).toBeLessThan(6144)
  })

  describe('actor tokens', () => {
    const withActor = async (actor: string, subject?: string) =>
      bad({ actor_token: actor, actor_token_type: accessToken }, subject)

    test('an expired or unknown one', async () => {
      expect(await withActor('unknown')).toMatch(/^invalid_request: actor_token is not active/)
      const actor = await server.token(planner)
      later(3601)
      expect(await withActor(actor)).toMatch(/^invalid_request: actor_token is not active/)
    })
    test('a revoked one', async () => {
      const actor = await server.token(planner)
      await server.post('/oauth2/revoke', { token: actor }, planner)
      expect(await withActor(actor)).toMatch(/^invalid_request: actor_token is not active/)
    })
    test('one of another client', async () => {
      expect(await withActor(await server.token(writer))).toMatch(
        /^invalid_request: actor_token belongs to another/,
      )
    })
    test('one for another audience', async () => {
      const actor = await server.token(planner, { resource: 'https://other.example' })
      expect(await withActor(actor)).toMatch(/^invalid_request: actor_token is for another audience/)
    })
    test('the subject token itself', async () => {
      const token = await aliceToken()
      expect(await withActor(token, token)).toBe('invalid_request: actor_token must not be the subject_token')
    })
    test('one that was itself exchanged', async () => {
      const nested = await exchanged(writer, await server.token(planner), { resource: 'did:key:planner' })
      expect(await withActor(nested)).toMatch(/^invalid_request: actor_token was itself exchanged/)
    })
    test('one of an unknown type', async () => {
      const more = { actor_token: await server.token(planner), actor_token_type: jwtType }
      expect(await bad(more)).toBe(`invalid_request: actor_token_type must be ${accessToken}`)
    })
  })
})
