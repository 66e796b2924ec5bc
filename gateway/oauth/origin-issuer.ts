import type { IncomingMessage } from 'node:http'
import type { KoaContextWithOIDC } from 'oidc-provider'

/**
 * The issuer has a path (`…/oauth2`), and its metadata is served at the origin as well. There it must name the origin as
 * issuer, or clients that were given the origin refuse it (RFC 8414, section 3.3). Those clients come back by an
 * authorization endpoint that says so, for its answer names the issuer too (RFC 9207).
 */
const atOrigin = new WeakSet<IncomingMessage>()

/** Parameter of the authorization endpoint: by which name its client knows the issuer. */
export const issuerParameter = 'parley_issuer'

/** The request asks for the metadata of the origin. */
export function markAtOrigin(request: IncomingMessage): void {
  atOrigin.add(request)
}

/** What differs in the metadata of the origin; nothing for that of the issuer itself. */
export function originMetadata({ req, oidc }: KoaContextWithOIDC): Record<string, unknown> {
  if (!atOrigin.has(req)) return {}
  const authorize = new URL(`${oidc.provider.issuer}/authorize`)
  authorize.searchParams.set(issuerParameter, 'origin')
  return { issuer: authorize.origin, authorization_endpoint: authorize.href }
}

/** Whether the client of this authorization knows the origin as issuer. */
export function isForOrigin({ oidc }: KoaContextWithOIDC): boolean {
  return (oidc as KoaContextWithOIDC['oidc'] | undefined)?.params?.[issuerParameter] === 'origin'
}

/** Puts the origin as `iss` into the answer of the authorization endpoint. */
export function nameOrigin(ctx: KoaContextWithOIDC): void {
  const { issuer } = ctx.oidc.provider
  const { origin } = new URL(issuer)
  const asParameter = (iss: string) => new URLSearchParams({ iss }).toString()
  const location = ctx.response.get('location')
  if (location !== '') ctx.set('location', location.replace(asParameter(issuer), asParameter(origin)))
  // `response_mode=form_post` answers with a page.
  else if (typeof ctx.body === 'string')
    ctx.body = ctx.body.replace(`name="iss" value="${issuer}"`, `name="iss" value="${origin}"`)
}
