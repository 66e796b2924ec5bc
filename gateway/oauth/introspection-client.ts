import { createHash, timingSafeEqual } from 'node:crypto'
import { findUsableClient } from './clients/client-settings.ts'
import type { OAuthStore } from './oauth-store.ts'

export interface IntrospectionClientOptions {
  store: OAuthStore
  /** Whether a self-registered client may introspect tokens because it is an admitted agent. */
  isTrusted?: ((clientId: string) => boolean) | undefined
  /** Called with credentials and whether they may introspect, so that the rate limit can exempt them. */
  onClientChecked?: (credentials: string, checks: boolean) => void
}

/** Returns whether a request comes from a client that may introspect tokens (`introspectionClient`). */
export async function isIntrospectionClient(
  options: IntrospectionClientOptions,
  authorization: string | undefined,
): Promise<boolean> {
  return (await introspectionClient(options, authorization)) !== undefined
}

/**
 * Returns the id of the client that sent a request, if it may introspect tokens and authenticates by HTTP Basic. This is
 * a managed client with `introspection` or a trusted client. The result is not cached, so a changed secret or the removal
 * of a client takes effect immediately.
 */
export async function introspectionClient(
  options: IntrospectionClientOptions,
  authorization: string | undefined,
): Promise<string | undefined> {
  const encoded = /^basic +([\w+/=-]{1,1024})$/i.exec(authorization ?? '')?.[1]
  if (encoded === undefined) return undefined
  const clientId = await verifyCredentials(options, encoded)
  options.onClientChecked?.(encoded, clientId !== undefined)
  return clientId
}

async function verifyCredentials(
  { store, isTrusted }: IntrospectionClientOptions,
  encoded: string,
): Promise<string | undefined> {
  const [id = '', secret = '', more] = Buffer.from(encoded, 'base64').toString('utf8').split(':')
  if (more !== undefined) return undefined
  const clientId = formDecode(id)
  const client = await findUsableClient(store, clientId)
  const checks = client?.['managed'] === true && client['introspection'] === true
  if (!checks && isTrusted?.(clientId) !== true) return undefined
  const storedSecret = client?.['client_secret']
  if (typeof storedSecret !== 'string') return undefined
  return timingSafeEqual(digest(storedSecret), digest(formDecode(secret))) ? clientId : undefined
}

/** Decodes credentials (RFC 6749, section 2.3.1). Malformed credentials match no client. */
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
