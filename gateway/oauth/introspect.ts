import type { Introspection } from '@parley/kit/auth/introspection'
import type { Provider } from 'oidc-provider'

const inactive = Object.freeze({ active: false }) satisfies Introspection

/**
 * Introspects an access token as in RFC 7662, but without HTTP. The response for an expired token that was not revoked
 * contains `exp`, so that the caller can report the token as expired.
 */
export async function introspect(provider: Provider, token: string): Promise<Introspection> {
  // This server's tokens have 43 characters, so text of another form is not looked up.
  if (!/^[\w-]{1,64}$/.test(token)) return inactive
  const ignoreExpiration = { ignoreExpiration: true }
  const found =
    (await provider.ClientCredentials.find(token, ignoreExpiration)) ??
    (await provider.AccessToken.find(token, ignoreExpiration))
  if (found?.exp === undefined || found.clientId === undefined) return inactive
  if (found.isExpired) return { active: false, exp: found.exp }
  // The client is the subject of its client credentials token. The reference implementation requires `sub`.
  const answer: Introspection = {
    active: true,
    client_id: found.clientId,
    sub: found.clientId,
    exp: found.exp,
  }
  if (found.kind === 'AccessToken') {
    const grant = await provider.Grant.find(found.grantId ?? '')
    if (grant?.clientId !== found.clientId || grant.accountId !== found.accountId) return inactive
    answer.sub = found.accountId
  }
  if (found.scope !== undefined) answer.scope = found.scope
  if (found.aud !== undefined) answer.aud = found.aud
  return answer
}
