import { isLoopback, isSafeRedirect } from '../client-rules.ts'
import type { OAuthStore } from '../oauth-store.ts'

/**
 * How a client came to this server that no operator registered: it registered itself without a token, or its id is the address
 * of its metadata.
 */
export type Provenance = 'open' | 'document'

/** The scopes of such clients. They never include the operator's. */
const unverifiedScopes = ['agent:read', 'agent:write']
const redirectUrisMax = 10
const daySeconds = 86_400

/** How long a client that registered itself is stored before a person approves it. */
export const unusedSeconds = daySeconds
/** How long such a client is stored after an approval, which ends after 30 days. */
const approvedSeconds = 60 * daySeconds

/** The model of the records of approved clients with a metadata document, for the list of clients. */
export const documentClientModel = 'DocumentClient'

/**
 * Returns the metadata of a public client as far as this server supports them. Everything else that the client states about
 * itself is omitted, which RFC 7591 (section 2) allows, because such metadata are written for many servers.
 */
export function unverifiedClient(given: Record<string, unknown>, provenance: Provenance) {
  const redirectUris = textsIn(given['redirect_uris']).filter(isSafeRedirect).slice(0, redirectUrisMax)
  const scopes = typeof given['scope'] === 'string' ? given['scope'].split(' ') : unverifiedScopes
  const useful = unverifiedScopes.filter((scope) => scopes.includes(scope))
  const refreshes = textsIn(given['grant_types']).includes('refresh_token')
  return {
    redirect_uris: redirectUris,
    scope: (useful.length === 0 ? unverifiedScopes : useful).join(' '),
    grant_types: ['authorization_code', ...(refreshes ? ['refresh_token'] : [])],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    // The port in a native client's loopback redirect may vary (RFC 8252, section 7.3).
    application_type: redirectUris.some(isLoopback) ? 'native' : 'web',
    ...(given['dpop_bound_access_tokens'] === true && { dpop_bound_access_tokens: true }),
    provenance,
  }
}

/** @param value the field `provenance` of a client */
export function provenanceOf(value: unknown): Provenance | undefined {
  return value === 'open' || value === 'document' ? value : undefined
}

/** Stores an approved client for longer, so that operators find it among the clients. */
export async function keepApproved(
  store: Pick<OAuthStore, 'find' | 'upsert'>,
  client: { clientId: string; clientName?: string | undefined; scope?: string | undefined },
  provenance: Provenance | undefined,
): Promise<void> {
  if (provenance === undefined) return
  const { clientId: id, clientName, scope } = client
  const model = provenance === 'open' ? 'Client' : documentClientModel
  const found = await store.find(model, id)
  const issuedAt = Math.floor(Date.now() / 1000)
  const payload = found ?? {
    client_id: id,
    ...(clientName !== undefined && { client_name: clientName }),
    scope,
    client_id_issued_at: issuedAt,
    provenance,
  }
  await store.upsert({ model, id, payload, expiresAt: issuedAt + approvedSeconds })
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
