import { ParleyError } from '@parley/wire/errors'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { scopes } from './client-rules.ts'
import { introspect } from './introspect.ts'
import { isForOrigin, nameOrigin, originMetadata } from './origin-issuer.ts'
import { away as awayText, errorPage } from './pages.ts'

/** Requests that failed because something of ours was away for a while. */
const away = new WeakMap<KoaContextWithOIDC, ParleyError>()

/** What is changed in the answers of oidc-provider before they leave. */
export function amendAnswers(provider: Provider): void {
  provider.on('server_error', (ctx: KoaContextWithOIDC, error: Error) => {
    if (error instanceof ParleyError && error.error === 'Unavailable') away.set(ctx, error)
  })
  provider.use((ctx, next) => next().then(() => amend(ctx as KoaContextWithOIDC)))
}

async function amend(ctx: KoaContextWithOIDC): Promise<void> {
  if (isForOrigin(ctx)) nameOrigin(ctx)
  const body = ctx.body as Record<string, unknown> | undefined
  const passing = away.get(ctx)
  if (ctx.status === 500 && passing !== undefined) {
    // Not a fault: whoever asks again later gets its answer.
    ctx.status = passing.status
    ctx.set({ 'cache-control': 'no-store', ...passing.headers })
    if (typeof ctx.body === 'string') ctx.body = errorPage(awayText)
    else if (body?.['error'] === 'server_error')
      ctx.body = { error: 'temporarily_unavailable', error_description: passing.message }
  } else if (ctx.status === 404 && body === undefined) {
    ctx.status = 404
    ctx.body = { error: 'invalid_request', error_description: 'no such endpoint' }
  } else if (ctx._matchedRouteName === 'discovery') {
    // oidc-provider always names "openid", which no client here can have.
    ctx.body = { ...body, scopes_supported: scopes, ...originMetadata(ctx) }
  } else if (ctx._matchedRouteName === 'introspection' && body?.['active'] === true) {
    // As in `introspect`: a token by client credentials is about the client.
    ctx.body = { ...body, sub: body['sub'] ?? body['client_id'] }
  } else if (ctx._matchedRouteName === 'introspection' && body?.['active'] === false) {
    await showExpiry(ctx)
  }
}

/** Servers that check tokens learn that a token has expired, rather than that it is unknown. */
async function showExpiry(ctx: KoaContextWithOIDC): Promise<void> {
  if (ctx.oidc.client?.['introspection'] !== true) return
  const { active, exp } = await introspect(ctx.oidc.provider, String(ctx.oidc.params?.['token']))
  if (!active && exp !== undefined) ctx.body = { active: false, exp }
}
