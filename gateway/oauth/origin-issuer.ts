import type { IncomingMessage } from 'node:http'
import type { KoaContextWithOIDC } from 'oidc-provider'

/**
 * Requests for the origin's metadata. The issuer has a path (`…/oauth2`), but its metadata is also served at the origin.
 * That copy must name the origin as issuer, because clients that were configured with the origin would otherwise refuse
 * it (RFC 8414, section 3.3). A parameter in the URL of their authorization endpoint identifies these clients later,
 * because the endpoint's response also contains the issuer (RFC 9207).
 */
const atOrigin = new WeakSet<IncomingMessage>()

/** The parameter of the authorization endpoint that identifies clients configured with the origin. */
export const issuerParameter = 'parley_issuer'

/** Marks a request for the origin's metadata. */
export function markAtOrigin(request: IncomingMessage): void {
  atOrigin.add(request)
}

/** Returns the overrides for the origin's metadata, or an empty object for the issuer's own metadata. */
export function originMetadata({ req, oidc }: KoaContextWithOIDC): Record<string, unknown> {
  if (!atOrigin.has(req)) return {}
  const authorize = new URL(`${oidc.provider.issuer}/authorize`)
  authorize.searchParams.set(issuerParameter, 'origin')
  return { issuer: authorize.origin, authorization_endpoint: authorize.href }
}

/** Returns whether the client of this authorization uses the origin as its issuer. */
export function isForOrigin({ oidc }: Partial<Pick<KoaContextWithOIDC, 'oidc'>>): boolean {
  return oidc?.params?.[issuerParameter] === 'origin'
}

/** Replaces `iss` in the authorization endpoint's response with the origin. */
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
