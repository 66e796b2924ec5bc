import type { Audit } from '@parley/kit/process/audit'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { errorPage, unavailableText } from '../approval/pages.ts'
import { scopes } from '../client-rules.ts'
import { isKey, type LongLivedKeys } from '../clients/long-lived-keys.ts'
import type { TokenExchanger } from '../exchange/embedded-exchange.ts'
import type { TokenIntrospection } from '../introspect.ts'
import { hasInvalidated } from '../leases/coherent-store.ts'
import type { Leases } from '../leases/leases.ts'
import { type RevocationRate, tagOfRevoked } from '../leases/revocations.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { isForOrigin, nameOrigin, originMetadata } from '../origin-issuer.ts'
import { addressOf } from '../request-address.ts'
import { checksTokens, type IsTrusted } from './policies.ts'

/** The requests that failed because the storage was temporarily unavailable. */
const outages = new WeakMap<KoaContextWithOIDC, ParleyError>()

const registrationRefused =
  'registration requires the initial access token of this server (npx parley token --initial) as a bearer token; an operator can allow it without one by OAUTH_OPEN_REGISTRATION=yes'

interface Parts {
  introspection: TokenIntrospection
  exchanger: Pick<TokenExchanger, 'revoke'>
  keys: LongLivedKeys
  isTrusted: IsTrusted | undefined
  audit: Audit
  leases: Pick<Leases, 'invalidate'>
  store: Pick<OAuthStore, 'find'>
  revocationRate: RevocationRate
}

/** Changes responses of oidc-provider before they are sent. */
export function amendAnswers(provider: Provider, parts: Parts): void {
  provider.on('server_error', (ctx: KoaContextWithOIDC, error: Error) => {
    if (error instanceof ParleyError && error.error === 'Unavailable') outages.set(ctx, error)
  })
  provider.use(async (ctx, next) => {
    await next()
    await amend(ctx as KoaContextWithOIDC, parts)
  })
}

async function amend(ctx: KoaContextWithOIDC, parts: Parts): Promise<void> {
  if (isForOrigin(ctx)) nameOrigin(ctx)
  const body = isObject(ctx.body) ? ctx.body : undefined
  const outage = outages.get(ctx)
  if (ctx.status === 500 && outage !== undefined) {
    // This is not a server error, because the client can retry.
    ctx.status = outage.status
    ctx.set({ 'cache-control': 'no-store', ...outage.headers })
    if (typeof ctx.body === 'string') ctx.body = errorPage(unavailableText)
    else if (body?.['error'] === 'server_error')
      ctx.body = { error: 'temporarily_unavailable', error_description: outage.message }
  } else if (ctx.status === 404 && ctx.body === undefined) {
    ctx.status = 404
    ctx.body = { error: 'invalid_request', error_description: 'no such endpoint' }
  } else if (ctx._matchedRouteName === 'discovery') {
    // oidc-provider always lists "openid", although no client can use it here.
    ctx.body = { ...body, scopes_supported: scopes, ...originMetadata(ctx) }
  } else if (ctx._matchedRouteName === 'registration' && ctx.status === 401) {
    ctx.body = { ...body, error_description: registrationRefused }
  } else if (ctx._matchedRouteName === 'introspection' && typeof body?.['active'] === 'boolean') {
    await completeIntrospection(ctx, body, parts)
  } else if (ctx._matchedRouteName === 'revocation' && ctx.status === 200) {
    await revokeOther(ctx, parts)
  }
}

/**
 * Revokes an exchanged token or a long-lived key, which oidc-provider does not know. An earlier request may have removed the
 * token, and still wait or have failed before it invalidated the responses.
 */
async function revokeOther(ctx: KoaContextWithOIDC, parts: Parts): Promise<void> {
  const { exchanger, keys, audit, leases, store, revocationRate } = parts
  const who = ctx.oidc.client?.clientId ?? ''
  if (hasInvalidated(ctx)) return
  if (revocationRate.hasRefused(ctx) || !revocationRate.allows(ctx, who)) {
    ctx.status = 429
    ctx.set({ 'cache-control': 'no-store', 'retry-after': '1' })
    ctx.body = {
      error: 'temporarily_unavailable',
      error_description: 'too many revocations by this client: repeat this one in a second',
    }
    return
  }
  try {
    const token = String(ctx.oidc.params?.['token'])
    const isRevoked = isKey(token) ? await keys.revokeOwn(token, who) : await exchanger.revoke(token, who)
    const action = isKey(token) ? 'oauth.revoke-key' : 'oauth.revoke-exchanged'
    if (isRevoked) audit.record({ who, address: addressOf(ctx.req), action, allowed: true })
    const tag = hasInvalidated(ctx) ? undefined : await tagOfRevoked(store, token, who)
    if (tag !== undefined) await leases.invalidate([tag])
  } catch (error) {
    const { status, headers, message } = ParleyError.from(error)
    ctx.status = status
    ctx.set({ 'cache-control': 'no-store', ...headers })
    ctx.body = {
      error: status === 503 ? 'temporarily_unavailable' : 'server_error',
      error_description: message,
    }
  }
}

/**
 * Completes the answer of oidc-provider, which does not know the limits of clients, exchanged tokens and long-lived keys, and
 * does not report expired tokens as expired.
 */
async function completeIntrospection(
  ctx: KoaContextWithOIDC,
  body: Record<string, unknown>,
  { introspection, isTrusted }: Parts,
): Promise<void> {
  const { client } = ctx.oidc
  const isRefreshToken = body['active'] === true && body['token_type'] === undefined
  if (client === undefined || isRefreshToken) return
  const token = String(ctx.oidc.params?.['token'])
  const { answer } = await introspection.introspectFor(client.clientId, token)
  if (body['active'] === true) ctx.body = answer.active ? { ...body, ...answer } : answer
  else if (client.clientAuthMethod !== 'none' && checksTokens(client, isTrusted)) ctx.body = answer
  // A client may introspect its own keys, as its own tokens.
  else if (
    answer.client_id === client.clientId &&
    answer.act === undefined &&
    client.clientAuthMethod !== 'none'
  )
    ctx.body = answer
}
