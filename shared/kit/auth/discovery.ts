import { request } from 'undici'
import { z } from 'zod'
import { boundedText } from '../net/bounded-text.ts'
import { connectionFault } from '../net/connection-fault.ts'

const metadata = z.object({
  issuer: z.string(),
  introspection_endpoint: z.url().optional(),
  token_endpoint: z.url().optional(),
  registration_endpoint: z.url().optional(),
  /** Ours: where the metadata of a client stands, with its `public_key`. One that is of no use is as none. */
  parley_client_metadata_uri_template: z
    .string()
    .max(2048)
    .refine(isClientTemplate)
    .optional()
    .catch(undefined),
})
export type ServerMetadata = z.infer<typeof metadata>

/** An address with `{client_id}` in its path or query, where a client's id is filled in. */
export function isClientTemplate(template: string): boolean {
  const [one, other] = ['1', '2'].map((id) => URL.parse(template.replaceAll('{client_id}', id)))
  if (one == null || other == null) return false
  if (one.pathname + one.search === other.pathname + other.search) return false
  // Our credentials go there: no client's id may choose the server.
  return /^https?:$/.test(one.protocol) && one.origin === other.origin && one.username + one.password === ''
}

/** No usable metadata at the issuer. `why` is a sentence fragment for the operator. */
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
 * RFC 8414: the metadata of an authorization server, from the well-known path before the issuer's own, else OpenID's
 * behind it.
 * @param timeoutMs for the whole, connections included
 * @throws DiscoveryFailed when neither answers, or the answer is about another issuer.
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
  if (response.statusCode !== 200) throw new Error(`${address} answered ${response.statusCode}`)
  const found = metadata.parse(JSON.parse(body))
  if (found.issuer.replace(/\/+$/, '') !== issuer.replace(/\/+$/, '')) {
    throw new Error('metadata is about another issuer')
  }
  return found
}
