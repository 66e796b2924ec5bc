import type { IncomingMessage } from 'node:http'
import type { KoaContextWithOIDC } from 'oidc-provider'

/**
 * Requests for the metadata of the origin. The issuer has a path (`…/oauth2`), but its metadata is also served at the
 * origin. There it must contain the origin as issuer, or clients that were configured with the origin refuse it (RFC
 * 8414, section 3.3). These clients are recognized later by a parameter of their authorization endpoint, because its
 * response contains the issuer too (RFC 9207).
 */
const atOrigin = new WeakSet<IncomingMessage>()

/** Parameter of the authorization endpoint that identifies clients of the origin. */
export const issuerParameter = 'parley_issuer'

/** Marks a request for the metadata of the origin. */
export function markAtOrigin(request: IncomingMessage): void {
  atOrigin.add(request)
}

/** Overrides for the metadata of the origin; empty for that of the issuer. */
export function originMetadata({ req, oidc }: KoaContextWithOIDC): Record<string, unknown> {
  if (!atOrigin.has(req)) return {}
  const authorize = new URL(`${oidc.provider.issuer}/authorize`)
  authorize.searchParams.set(issuerParameter, 'origin')
  return { issuer: authorize.origin, authorization_endpoint: authorize.href }
}

/** Whether the client of this authorization uses the origin as issuer. */
export function isForOrigin({ oidc }: Partial<Pick<KoaContextWithOIDC, 'oidc'>>): boolean {
  return oidc?.params?.[issuerParameter] === 'origin'
}

/** Replaces `iss` in the response of the authorization endpoint by the origin. */
export function nameOrigin(ctx: KoaContextWithOIDC): void {
  const { issuer } = ctx.oidc.provider
  const { origin } = new URL(issuer)
  const asParameter = (iss: string) => new URLSearchParams({ iss }).toString()
  const location = ctx.response.get('location')
  if (location !== '') ctx.set('location', location.replace(asParameter(issuer), asParameter(origin)))
  // `response_mode=form_post` responds with a page.
  else if (typeof ctx.body === 'string')
    ctx.body = ctx.body.replace(`name="iss" value="${issuer}"`, `name="iss" value="${origin}"`)
}
