import { discover } from './discovery.ts'

/** Addresses of an OAuth server, as given in the settings. */
export interface OAuthAddresses {
  issuer: string | undefined
  introspectionUrl: string | undefined
  /** URL template with `{client_id}`. */
  clientMetadataUrl: string | undefined
}

/**
 * URL template with `{client_id}`. A function performs discovery; it returns undefined if the issuer publishes none.
 */
export type ClientMetadataUrl = string | (() => Promise<string | undefined>)

const hydraIntrospection = /\/admin\/oauth2\/introspect$/

/**
 * Returns the URL template of client metadata: the configured template, one derived from the introspection endpoint
 * if that is Ory Hydra's, or the one in the issuer's metadata (RFC 8414, `parley_client_metadata_uri_template`).
 * Returns undefined if there is no issuer; every signed request is then rejected.
 * @param onMissing called if the issuer's metadata contains no template
 */
export function clientMetadataUrl(
  oauth: OAuthAddresses,
  onMissing: () => void = () => {},
): ClientMetadataUrl | undefined {
  const { issuer, introspectionUrl } = oauth
  const template = oauth.clientMetadataUrl ?? hydraTemplate(introspectionUrl)
  if (template !== undefined || issuer === undefined) return template
  return async () => {
    const metadata = await discover(issuer)
    const published =
      metadata.parley_client_metadata_uri_template ?? hydraTemplate(metadata.introspection_endpoint)
    if (published === undefined) onMissing()
    return published
  }
}

/** Hydra's admin API serves clients at `…/admin/clients/{client_id}`, next to `…/admin/oauth2/introspect`. */
function hydraTemplate(introspectionUrl: string | undefined): string | undefined {
  const url = introspectionUrl === undefined ? null : URL.parse(introspectionUrl)
  if (url === null || !hydraIntrospection.test(url.pathname)) return undefined
  return url.origin + url.pathname.replace(hydraIntrospection, '/admin/clients/{client_id}')
}

/** Log message for `onMissing`. */
export const missingClientMetadataUrl =
  'signed requests are rejected: the OAuth server publishes no client metadata URL; set OAUTH_CLIENT_METADATA_URL'
