import { readFile } from 'node:fs/promises'
import path from 'node:path'
import * as oauth from 'openid-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startIdentityProvider, type TestIdentityProvider, temporaryFolder } from './testing.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let code: string
const redirectUri = 'http://127.0.0.1:9/cb'

beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
  code = (await readFile(path.join(folder.dir, 'oauth/sign-in-code'), 'utf8')).trim()
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

async function registered(metadata: object) {
  const { body } = await server.register({ client_name: 'a client of openid-client', ...metadata })
  return { id: String(body['client_id']), secret: String(body['client_secret']) }
}

/** Discovers the server with `openid-client` over plain HTTP on this machine. */
function found(issuer: string, id: string, authentication: oauth.ClientAuth) {
  return oauth.discovery(new URL(issuer), id, undefined, authentication, {
    algorithm: 'oauth2',
    execute: [oauth.allowInsecureRequests],
  })
}

/** Acts as the browser of the person who approves, and returns the redirect to the application. */
async function approved(address: URL): Promise<URL> {
  const cookies = new Map<string, string>()
  const go = async (to: string, form?: Record<string, string>) => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const sent = form === undefined ? {} : { method: 'POST', body: new URLSearchParams(form) }
    const answer = await server.fetch(to, { headers: { cookie, accept: 'text/html' }, ...sent })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    return answer.headers.get('location') ?? ''
  }
  const page = await go(address.pathname + address.search)
  return new URL(await go(await go(page, { decision: 'approve', code })))
}

describe.each([
  ['the origin of the gateway', () => server.origin],
  ['the issuer with its path', () => `${server.origin}/oauth2`],
])('openid-client configured with %s', (_what, issuer) => {
  test('discovers the server and gets a token with client credentials', async () => {
    const { id, secret } = await registered({ grant_types: ['client_credentials'] })
    const config = await found(issuer(), id, oauth.ClientSecretPost(secret))
    expect(config.serverMetadata().issuer).toBe(issuer())
    const token = await oauth.clientCredentialsGrant(config, { scope: 'agent:read' })
    expect(token).toMatchObject({ token_type: 'bearer', scope: 'agent:read' })
    const said = await oauth.tokenIntrospection(config, token.access_token)
    expect(said).toMatchObject({ active: true, client_id: id })
  })

  test('gets a token bound to its key with DPoP, and introspection names the key', async () => {
    const { id, secret } = await registered({ grant_types: ['client_credentials'] })
    const config = await found(issuer(), id, oauth.ClientSecretPost(secret))
    const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair())
    const token = await oauth.clientCredentialsGrant(config, { scope: 'agent:read' }, { DPoP })
    expect(token.token_type).toBe('dpop')
    const jkt = await DPoP.calculateThumbprint()
    const said = await oauth.tokenIntrospection(config, token.access_token)
    expect(said).toMatchObject({ active: true, cnf: { jkt }, token_type: 'DPoP' })
    const answer = await server.provider.introspect(token.access_token)
    expect(answer).toMatchObject({ active: true, client_id: id, cnf: { jkt }, token_type: 'DPoP' })
  })

  test.each(['ES256', 'Ed25519', 'RS256'])('authenticates with private_key_jwt (%s)', async (alg) => {
    const { privateKey, publicKey } = await oauth.randomDPoPKeyPair(alg, { extractable: true })
    const { id } = await registered({
      grant_types: ['client_credentials'],
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: { keys: [{ ...(await crypto.subtle.exportKey('jwk', publicKey)), kid: 'one' }] },
    })
    const config = await found(issuer(), id, oauth.PrivateKeyJwt({ key: privateKey, kid: 'one' }))
    const token = await oauth.clientCredentialsGrant(config, { scope: 'agent:write' })
    expect(token.scope).toBe('agent:write')
    const said = await oauth.tokenIntrospection(config, token.access_token)
    expect(said).toMatchObject({ active: true, client_id: id })
    await oauth.tokenRevocation(config, token.access_token)
    expect(await server.provider.introspect(token.access_token)).toEqual({ active: false })
  })

  test('accepts the authorization endpoint’s response as coming from this issuer', async () => {
    const { id } = await registered({
      application_type: 'native',
      redirect_uris: ['http://127.0.0.1/cb'],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
    })
    const config = await found(issuer(), id, oauth.None())
    const pkceCodeVerifier = oauth.randomPKCECodeVerifier()
    const state = oauth.randomState()
    const address = oauth.buildAuthorizationUrl(config, {
      redirect_uri: redirectUri,
      scope: 'agent:read',
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(pkceCodeVerifier),
      code_challenge_method: 'S256',
    })
    const back = await approved(address)
    expect(back.searchParams.get('iss')).toBe(issuer())
    const checks = { pkceCodeVerifier, expectedState: state }
    const token = await oauth.authorizationCodeGrant(config, back, checks)
    expect(token.scope).toBe('agent:read')
    const renewed = await oauth.refreshTokenGrant(config, String(token.refresh_token))
    expect(renewed.access_token).not.toBe(token.access_token)
    // Errors from the authorization endpoint also contain the issuer.
    const refused = new URL(address)
    refused.searchParams.set('scope', 'agent:admin')
    const { headers } = await server.fetch(refused.pathname + refused.search)
    const failed = new URL(headers.get('location') ?? '')
    expect([failed.searchParams.get('error'), failed.searchParams.get('iss')]).toEqual([
      'invalid_scope',
      issuer(),
    ])
  })
})

test('the metadata at each address names the issuer for that address', async () => {
  for (const [address, issuer] of [
    ['/.well-known/oauth-authorization-server', server.origin],
    ['/.well-known/oauth-authorization-server/oauth2', `${server.origin}/oauth2`],
    ['/oauth2/.well-known/oauth-authorization-server', `${server.origin}/oauth2`],
  ] as const) {
    const { status, body } = await server.fetch(address)
    expect([status, body['issuer']]).toEqual([200, issuer])
    expect(body['token_endpoint']).toBe(`${server.origin}/oauth2/token`)
  }
})
