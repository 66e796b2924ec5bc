import { createHash, timingSafeEqual } from 'node:crypto'
import type { OAuthStore } from './oauth-store.ts'

export interface IntrospectionClientOptions {
  store: OAuthStore
  /** Self-registered clients that may introspect tokens too: admitted agents. */
  isTrusted?: ((clientId: string) => boolean) | undefined
  /** Called with credentials and whether they may introspect, to exempt them from the rate limit. */
  onClientChecked?: (credentials: string, checks: boolean) => void
}

/**
 * Whether a request comes from a client that may introspect tokens: a managed client with `introspection` or a trusted
 * one, authenticated by HTTP Basic. Not cached, so that a changed secret or a removed client takes effect immediately.
 */
export async function isIntrospectionClient(
  options: IntrospectionClientOptions,
  authorization: string | undefined,
): Promise<boolean> {
  const encoded = /^basic +([\w+/=-]{1,1024})$/i.exec(authorization ?? '')?.[1]
  if (encoded === undefined) return false
  const checks = await verifyCredentials(options, encoded)
  options.onClientChecked?.(encoded, checks)
  return checks
}

async function verifyCredentials(
  { store, isTrusted }: IntrospectionClientOptions,
  encoded: string,
): Promise<boolean> {
  const [id = '', secret = '', more] = Buffer.from(encoded, 'base64').toString('utf8').split(':')
  if (more !== undefined) return false
  const clientId = formDecode(id)
  const client = await store.find('Client', clientId)
  const checks = client?.['managed'] === true && client['introspection'] === true
  if (!checks && isTrusted?.(clientId) !== true) return false
  const storedSecret = client?.['client_secret']
  return typeof storedSecret === 'string' && timingSafeEqual(digest(storedSecret), digest(formDecode(secret)))
}

/** Decodes credentials (RFC 6749, section 2.3.1). Malformed ones match no client. */
function formDecode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return ''
  }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
