import { discover } from './discovery.ts'

/** What is said of an OAuth server in the settings. */
export interface OAuthAddresses {
  issuer: string | undefined
  introspectionUrl: string | undefined
  /** With `{client_id}` in it. */
  clientMetadataUrl: string | undefined
}

/** Where the metadata of a client stands, with `{client_id}` to fill in; a function asks, and may learn that nobody says. */
export type ClientMetadataUrl = string | (() => Promise<string | undefined>)

const hydraIntrospection = /\/admin\/oauth2\/introspect$/

/**
 * Where the keys of clients are read: as configured; beside the introspection endpoint where that is Ory Hydra's; else as
 * the metadata of the issuer says it (RFC 8414, `parley_client_metadata_uri_template`). Undefined: nobody can be asked,
 * and every signed request is refused.
 * @param nobodySays told when the metadata of the issuer does not say it
 */
export function clientMetadataUrl(
  oauth: OAuthAddresses,
  nobodySays: () => void = () => {},
): ClientMetadataUrl | undefined {
  const { issuer, introspectionUrl } = oauth
  const known = oauth.clientMetadataUrl ?? besideHydra(introspectionUrl)
  if (known !== undefined || issuer === undefined) return known
  return async () => {
    const found = await discover(issuer)
    const said = found.parley_client_metadata_uri_template ?? besideHydra(found.introspection_endpoint)
    if (said === undefined) nobodySays()
    return said
  }
}

/** Hydra's admin API: `…/admin/oauth2/introspect` has the clients at `…/admin/clients/{client_id}`. */
function besideHydra(introspectionUrl: string | undefined): string | undefined {
  const url = introspectionUrl === undefined ? null : URL.parse(introspectionUrl)
  if (url === null || !hydraIntrospection.test(url.pathname)) return undefined
  return url.origin + url.pathname.replace(hydraIntrospection, '/admin/clients/{client_id}')
}

/** For the log of a server that has nobody to ask. */
export const nobodySaysWhere =
  'signed requests are refused: the OAuth server does not say where client metadata stands (OAUTH_CLIENT_METADATA_URL)'
