import { z } from 'zod'
import { boundedText } from '../net/bounded-text.ts'
import { connectionFault } from '../net/connection-fault.ts'
import { request } from '../net/http-client.ts'

const metadata = z.object({
  issuer: z.string(),
  introspection_endpoint: z.url().optional(),
  token_endpoint: z.url().optional(),
  registration_endpoint: z.url().optional(),
  grant_types_supported: z.array(z.string()).optional().catch(undefined),
  /** Parley extension: URL template of client metadata with `public_key`. An invalid template counts as absent. */
  parley_client_metadata_uri_template: z
    .string()
    .max(2048)
    .refine(isClientTemplate)
    .optional()
    .catch(undefined),
})
export type ServerMetadata = z.infer<typeof metadata>

/** Whether the text is a URL template with `{client_id}` in its path or query. */
export function isClientTemplate(template: string): boolean {
  const [first, second] = ['1', '2'].map((id) => URL.parse(template.replaceAll('{client_id}', id)))
  if (first == null || second == null) return false
  if (first.pathname + first.search === second.pathname + second.search) return false
  // Requests carry credentials, so the client id must not influence the origin.
  const { protocol, origin, username, password } = first
  return /^https?:$/.test(protocol) && origin === second.origin && username + password === ''
}

/** The issuer has no usable metadata. `why` is a phrase for the operator. */
export class DiscoveryFailed extends Error {
  override readonly name = 'DiscoveryFailed'
  readonly issuer: string
  readonly why: string
  constructor(issuer: string, cause: unknown) {
    const why = connectionFault(cause, issuer) ?? (cause instanceof Error ? cause.message : String(cause))
    super(`no OAuth server metadata at ${issuer}: ${why}`, { cause })
    this.issuer = issuer
    this.why = why
  }
}

/**
 * Fetches the metadata of an authorization server (RFC 8414) from the well-known path inserted before the issuer's
 * path or, if that fails, from the OpenID Connect path appended to it.
 * @param timeoutMs time limit for all requests together, including connecting
 * @throws DiscoveryFailed if neither request succeeds or the metadata is about another issuer
 */
export async function discover(issuer: string, timeoutMs = 2000): Promise<ServerMetadata> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname.replace(/\/+$/, '')
  const addresses = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
  const signal = AbortSignal.timeout(timeoutMs)
  let failure: unknown
  for (const address of addresses) {
    try {
      return await fetchMetadata(address, issuer, signal)
    } catch (error) {
      failure = error
    }
  }
  throw new DiscoveryFailed(issuer, failure)
}

async function fetchMetadata(address: string, issuer: string, signal: AbortSignal): Promise<ServerMetadata> {
  const response = await request(address, { signal, headers: { accept: 'application/json' } })
  const body = await boundedText(response.body)
  if (response.statusCode !== 200) throw new Error(`${address} returned ${response.statusCode}`)
  const parsed = metadata.parse(JSON.parse(body))
  if (parsed.issuer.replace(/\/+$/, '') !== issuer.replace(/\/+$/, '')) {
    throw new Error('metadata is about another issuer')
  }
  return parsed
}
