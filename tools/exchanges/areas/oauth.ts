import { createHash } from 'node:crypto'
import { header, textAt, valueAt } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import { signed, signerFrom } from '../signing.ts'
import { bearer, type Client, tokenRequest, type World } from '../world.ts'

/** Records the embedded OAuth server: metadata, registration, tokens, introspection, revocation, the code grant. */
export async function oauth(recorder: Recorder, world: World): Promise<void> {
  const { gateway } = world.deployment
  const alice = await world.client(recorder, 'alice')
  await metadata(recorder, gateway)
  await registration(recorder, world)
  await tokens(recorder, world, alice)
  await introspection(recorder, world, alice)
  await codeGrant(recorder, world)
}

async function metadata(recorder: Recorder, gateway: string): Promise<void> {
  const get = (title: string, path: string) => recorder.exchange(title, { url: `${gateway}${path}` })
  await get('metadata at the origin', '/.well-known/oauth-authorization-server')
  await get('metadata of the issuer', '/.well-known/oauth-authorization-server/oauth2')
  await get('metadata of OpenID Connect', '/oauth2/.well-known/openid-configuration')
  await recorder.exchange(
    'keys',
    { url: `${gateway}/oauth2/jwks` },
    { body: (text) => text.replace(/"(x|y|kid)":"[^"]+"/g, '"$1":"<key>"') },
  )
  await get('an unknown path', '/oauth2/nothing')
  await get('the path of the issuer', '/oauth2')
  await recorder.exchange('metadata by POST', {
    method: 'POST',
    url: `${gateway}/.well-known/oauth-authorization-server`,
  })
}

async function registration(recorder: Recorder, { deployment, callers }: World): Promise<void> {
  const { gateway, initialToken } = deployment
  const url = `${gateway}/oauth2/register`
  const register = (title: string, body: unknown, headers: Record<string, string> = bearer(initialToken)) =>
    recorder.exchange(`registration: ${title}`, {
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json', ...headers },
      body,
    })
  const machine = { client_name: 'machine', grant_types: ['client_credentials'], scope: 'agent:read' }
  const made = await register('a client', machine)
  await register('without a token', machine, {})
  await register('with a token of a client', machine, bearer(callers.developer.token))
  await register('without a scope', { client_name: 'machine', grant_types: ['client_credentials'] })
  await register('the operator’s scope', { ...machine, scope: 'agent:admin' })
  await register('an unknown scope', { ...machine, scope: 'everything' })
  await register('a name with a line break', { ...machine, client_name: 'a\nb' })
  await register('an unknown grant', { ...machine, grant_types: ['magic'] })
  await register('introspection', { ...machine, introspection: true })
  await register('remote keys', { ...machine, jwks_uri: 'https://keys.example' })
  await register('a redirect to http', { client_name: 'page', redirect_uris: ['http://page.example/cb'] })
  await register('a malformed public key', { ...machine, public_key: 'x' })
  await register('a body that is not JSON', '{')
  await register('a list', [])
  const key = signerFrom(44, 'recorder')
  const did = { ...machine, client_id: key.did, public_key: key.publicKey, issuer: `${gateway}/oauth2` }
  await register('a DID without signature', did)
  const body = JSON.stringify(did)
  await register('a DID', body, { ...bearer(initialToken), ...signed(key, { body }) })
  await register('a DID again', body, { ...bearer(initialToken), ...signed(key, { body }) })
  await register('a malformed DID', { ...did, client_id: 'did:x' })
  await managed(recorder, textAt(made, 'registration_client_uri'), textAt(made, 'registration_access_token'))
}

/** Records client configuration requests (RFC 7592). */
async function managed(recorder: Recorder, url: string, token: string): Promise<void> {
  const headers = { ...bearer(token), 'content-type': 'application/json' }
  recorder.hide(token, 'registration access token')
  await recorder.exchange('client read by itself', { url, headers: bearer(token) })
  await recorder.exchange('client read with another token', { url, headers: bearer('nothing') })
  await recorder.exchange('client changed without its id', {
    method: 'PUT',
    url,
    headers,
    body: { client_name: 'new' },
  })
  await recorder.exchange('client deleted', { method: 'DELETE', url, headers: bearer(token) })
  await recorder.exchange('deleted client read', { url, headers: bearer(token) })
}

async function tokens(recorder: Recorder, { deployment, callers }: World, alice: Client): Promise<void> {
  const { gateway, agents } = deployment
  const grant = (title: string, form: Record<string, string>, client: Client = alice) =>
    recorder.exchange(title, tokenRequest(gateway, client, form))
  const credentials = { grant_type: 'client_credentials' }
  await grant('token: of both scopes', { ...credentials, scope: 'agent:read agent:write' })
  await grant('token: of one scope', { ...credentials, scope: 'agent:read' })
  await grant('token: without a scope', credentials)
  await grant('token: of a scope that the client does not have', { ...credentials, scope: 'agent:admin' })
  await grant('token: of an unknown scope', { ...credentials, scope: 'everything' })
  await grant('token: of OpenID scopes', { ...credentials, scope: 'openid offline agent:read' })
  await grant('token: for a resource', { ...credentials, scope: 'agent:read', resource: `${agents['echo']}` })
  await grant('token: for a resource that is not a URL', { ...credentials, resource: 'echo' })
  await grant('token: of an unknown grant', { grant_type: 'magic' })
  await grant('token: without a grant', {})
  await grant('token: for an unknown code', {
    grant_type: 'authorization_code',
    code: 'x',
    redirect_uri: 'http://127.0.0.1/',
  })
  await grant('token: for an unknown refresh token', { grant_type: 'refresh_token', refresh_token: 'x' })
  await grant('token: with a wrong secret', credentials, { ...alice, clientSecret: 'wrong' })
  await grant('token: of an unknown client', credentials, { ...alice, clientId: 'nobody' })
  const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
  const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
  await grant('token: in exchange', {
    grant_type: exchangeGrant,
    subject_token: alice.token,
    subject_token_type: accessToken,
  })
  await grant('token: of the operator', { ...credentials, scope: 'agent:admin' }, callers.operator)
  const { headers: _, ...bare } = tokenRequest(gateway, alice, credentials)
  await recorder.exchange('token: without credentials', {
    ...bare,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  const form = { ...credentials, client_id: alice.clientId, client_secret: alice.clientSecret }
  await recorder.exchange('token: credentials in the form', {
    ...bare,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  })
  await recorder.exchange('token: JSON', {
    ...bare,
    headers: { 'content-type': 'application/json' },
    body: form,
  })
  await recorder.exchange('token: GET', { url: bare.url })
  await recorder.exchange('token: a body of 60 KiB', {
    ...tokenRequest(gateway, alice, { x: 'x'.repeat(60 * 1024) }),
  })
}

async function introspection(
  recorder: Recorder,
  { deployment, callers }: World,
  alice: Client,
): Promise<void> {
  const { gateway } = deployment
  const introspect = (title: string, form: Record<string, string>, client: Client) =>
    recorder.exchange(`introspection: ${title}`, tokenRequest(gateway, client, form, 'introspect'))
  await introspect('its own token', { token: alice.token }, alice)
  await introspect('a foreign token', { token: alice.token }, callers.developer)
  await introspect('an unknown token', { token: 'nothing' }, alice)
  await introspect('no token', {}, alice)
  await introspect('with a wrong secret', { token: alice.token }, { ...alice, clientSecret: 'wrong' })
  await recorder.exchange('introspection: without credentials', {
    method: 'POST',
    url: `${gateway}/oauth2/introspect`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `token=${alice.token}`,
  })
  const revoke = (title: string, form: Record<string, string>, client: Client) =>
    recorder.exchange(`revocation: ${title}`, tokenRequest(gateway, client, form, 'revoke'))
  await revoke('a foreign token', { token: alice.token }, callers.developer)
  await revoke('an unknown token', { token: 'nothing' }, alice)
  await revoke('no token', {}, alice)
  await revoke('its own token', { token: alice.token }, alice)
  await introspect('a revoked token', { token: alice.token }, alice)
}

async function codeGrant(recorder: Recorder, { deployment }: World): Promise<void> {
  const { gateway, initialToken } = deployment
  const native = {
    client_name: 'desk',
    application_type: 'native',
    redirect_uris: ['http://127.0.0.1/cb'],
    token_endpoint_auth_method: 'none',
    scope: 'agent:read agent:write',
  }
  const client = await recorder.exchange('registration: a native application', {
    method: 'POST',
    url: `${gateway}/oauth2/register`,
    headers: { ...bearer(initialToken), 'content-type': 'application/json' },
    body: native,
  })
  const clientId = textAt(client, 'client_id')
  recorder.hide(clientId, 'client desk')
  const challenge = createHash('sha256').update('v'.repeat(43)).digest('base64url')
  const query = {
    client_id: clientId,
    response_type: 'code',
    redirect_uri: 'http://127.0.0.1/cb',
    scope: 'agent:read',
    state: 'abc',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  }
  const authorize = (title: string, more: Record<string, string>) =>
    recorder.exchange(
      `authorization: ${title}`,
      {
        url: `${gateway}/oauth2/authorize?${new URLSearchParams({ ...query, ...more }).toString()}`,
      },
      { body: hiddenNonces },
    )
  await authorize('an unknown client', { client_id: 'nobody' })
  await authorize('another address', { redirect_uri: 'http://evil.example/' })
  await authorize('without a challenge', { code_challenge: '' })
  await authorize('a scope of the operator', { scope: 'agent:admin' })
  await authorize('the response type token', { response_type: 'token' })
  const begun = await authorize('a request', {})
  await approval(recorder, gateway, header(begun, 'location') ?? '', begun.headers)
  if (valueAt(client, 'client_secret') !== undefined) throw new Error('a native application got a secret')
}

const hiddenNonces = (text: string) => text.replace(/nonce-[\w+/=-]+/g, 'nonce-<nonce>')

/** The approval page in a browser: a wrong code is refused, and finally the user denies the request. */
async function approval(
  recorder: Recorder,
  gateway: string,
  location: string,
  headers: string[],
): Promise<void> {
  const cookie = headers
    .flatMap((name, i) =>
      i % 2 === 0 && name.toLowerCase() === 'set-cookie' ? [headers[i + 1]?.split(';')[0] ?? ''] : [],
    )
    .join('; ')
  for (const pair of cookie.split('; '))
    recorder.hide(pair.slice(pair.indexOf('=') + 1), `cookie ${pair.split('=')[0]}`)
  const url = new URL(location, gateway).href
  recorder.hide(new URL(url).pathname.split('/').at(-1) ?? '', 'interaction')
  await recorder.exchange('approval: the page', { url, headers: { cookie } }, { body: hiddenNonces })
  await recorder.exchange('approval: without a cookie', { url }, { body: hiddenNonces })
  const post = (title: string, form: string) =>
    recorder.exchange(
      `approval: ${title}`,
      {
        method: 'POST',
        url,
        headers: { cookie, 'content-type': 'application/x-www-form-urlencoded' },
        body: form,
      },
      { body: hiddenNonces },
    )
  await post('no decision', 'decision=perhaps')
  await post('a wrong code', 'decision=approve&code=000000')
  await post('refused', 'decision=refuse')
}
