import { randomBytes } from 'node:crypto'
import { type Hydra, hydraIsThere, startHydra } from '@parley/tools/testing/hydra'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ClientToken } from './client-token.ts'
import { HttpIntrospector } from './introspection.ts'
import { type Credentials, type NewClient, type ProviderUnderTest, providerCases } from './provider.cases.ts'

interface HydraClient extends Partial<NewClient> {
  client_credentials_grant_access_token_lifespan?: string
  redirect_uris?: string[]
}

/** Creates or replaces the client through the admin API. */
async function put({ adminUrl }: Hydra, client: HydraClient & { clientId: string }): Promise<Credentials> {
  const { clientId, publicKey, audience, ...more } = client
  const body = {
    client_id: clientId,
    client_secret: `secret of ${clientId}`,
    grant_types: [
      'client_credentials',
      ...(more.redirect_uris ? ['authorization_code', 'refresh_token'] : []),
    ],
    response_types: more.redirect_uris ? ['code'] : [],
    scope: `agent:read agent:write${more.redirect_uris ? ' offline_access' : ''}`,
    token_endpoint_auth_method: 'client_secret_post',
    ...(audience !== undefined && { audience: [audience] }),
    ...(publicKey !== undefined && { metadata: { public_key: publicKey } }),
    ...more,
  }
  const at = `${adminUrl}/admin/clients`
  const existing = await fetch(`${at}/${encodeURIComponent(clientId)}`)
  await existing.body?.cancel()
  const answer = await fetch(existing.ok ? `${at}/${encodeURIComponent(clientId)}` : at, {
    method: existing.ok ? 'PUT' : 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(await answer.text())
  return { clientId, clientSecret: body.client_secret }
}

async function underTest(): Promise<ProviderUnderTest> {
  const hydra = await startHydra()
  const name = () => `did:parley:carol:agent:${randomBytes(8).toString('hex')}`
  const introspectionUrl = `${hydra.adminUrl}/admin/oauth2/introspect`
  const tokenUrl = `${hydra.publicUrl}/oauth2/token`
  return {
    issuer: hydra.publicUrl,
    introspectionUrl,
    introspectionEndpoint: introspectionUrl,
    tokenUrl,
    checker: await put(hydra, { clientId: name() }),
    client: (client) => put(hydra, client),
    revoke: async (token, { clientId, clientSecret }) => {
      const form = { token, client_id: clientId, client_secret: clientSecret }
      const answer = await fetch(`${hydra.publicUrl}/oauth2/revoke`, {
        method: 'POST',
        body: new URLSearchParams(form),
      })
      if (!answer.ok) throw new Error(await answer.text())
    },
    expiredToken: async () => {
      const lifespan = { client_credentials_grant_access_token_lifespan: '1s' }
      const client = await put(hydra, { clientId: name(), ...lifespan })
      const token = await new ClientToken({ tokenUrl, scope: 'agent:read', ...client }).get()
      await using introspector = new HttpIntrospector({ url: introspectionUrl, ...client })
      await expect
        .poll(async () => (await introspector.introspect(token)).active, { timeout: 40_000 })
        .toBe(false)
      return token
    },
    [Symbol.asyncDispose]: () => hydra[Symbol.asyncDispose](),
  }
}

describe.skipIf(!hydraIsThere())('Ory Hydra (needs hydra)', () => {
  providerCases(underTest, { authenticatesCheckers: false })

  describe('a user who gives consent', () => {
    let hydra: Hydra
    beforeAll(async () => {
      hydra = await startHydra()
    })
    afterAll(() => hydra?.[Symbol.asyncDispose]())

    test('a refresh token is not accepted as an access token', async () => {
      const redirect = 'http://127.0.0.1:9/back'
      const clientId = `did:parley:dora:agent:${randomBytes(8).toString('hex')}`
      const client = await put(hydra, { clientId, redirect_uris: [redirect] })
      const { access_token: access, refresh_token: refresh } = await approvedTokens(hydra, client, redirect)
      const url = `${hydra.adminUrl}/admin/oauth2/introspect`
      await using introspector = new HttpIntrospector({ url, ...client, timeoutMs: 30_000 })
      expect(await introspector.introspect(access ?? '')).toMatchObject({
        active: true,
        client_id: clientId,
        sub: 'dora',
      })
      expect(refresh).toMatch(/./)
      expect(await introspector.introspect(refresh ?? '')).toEqual({ active: false })
    })
  })
})

/** Runs the authorization code flow and gives login and consent through the admin API. */
async function approvedTokens(hydra: Hydra, client: Credentials, redirect: string) {
  const cookies = new Map<string, string>()
  const follow = async (url: string): Promise<URL> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
      cookies.set(name, value)
    }
    return new URL(answer.headers.get('location') ?? url)
  }
  const accept = async (what: 'login' | 'consent', at: URL, body: object): Promise<string> => {
    const challenge = at.searchParams.get(`${what}_challenge`) ?? ''
    const route = `${hydra.adminUrl}/admin/oauth2/auth/requests/${what}/accept?${what}_challenge=${challenge}`
    const answer = await fetch(route, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    const { redirect_to: to = '' } = (await answer.json()) as Record<string, string>
    return to
  }
  const scope = 'agent:read offline_access'
  const query = {
    client_id: client.clientId,
    response_type: 'code',
    redirect_uri: redirect,
    scope,
    state: 'x'.repeat(16),
  }
  const login = await follow(`${hydra.publicUrl}/oauth2/auth?${new URLSearchParams(query).toString()}`)
  const consent = await follow(await accept('login', login, { subject: 'dora' }))
  const back = await follow(await accept('consent', consent, { grant_scope: scope.split(' ') }))
  const answer = await fetch(`${hydra.publicUrl}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      code: back.searchParams.get('code') ?? '',
      redirect_uri: redirect,
      client_id: client.clientId,
      client_secret: client.clientSecret,
    }),
  })
  return (await answer.json()) as { access_token?: string; refresh_token?: string }
}
