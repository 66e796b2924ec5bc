import { createHash, timingSafeEqual } from 'node:crypto'
import type { OAuthStore } from './oauth-store.ts'

export interface CheckerOptions {
  store: OAuthStore
  /** Clients that registered themselves and may check tokens all the same: agents that were admitted. */
  isTrusted?: ((clientId: string) => boolean) | undefined
  /** Told of credentials whether they are those of such a server: it asks with each request of its own callers. */
  checkerIsKnown?: (credentials: string, checks: boolean) => void
}

/**
 * Whether a request comes from a server that checks tokens: a client of the gateway with `introspection`, or one that is
 * trusted, that authenticates by HTTP Basic. Read anew each time, so that a changed secret or a removed client counts at
 * once.
 */
export async function isChecker(
  options: CheckerOptions,
  authorization: string | undefined,
): Promise<boolean> {
  const encoded = /^basic +([\w+/=-]{1,1024})$/i.exec(authorization ?? '')?.[1]
  if (encoded === undefined) return false
  const checks = await areOfChecker(options, encoded)
  options.checkerIsKnown?.(encoded, checks)
  return checks
}

async function areOfChecker({ store, isTrusted }: CheckerOptions, encoded: string): Promise<boolean> {
  const [id = '', secret = '', more] = Buffer.from(encoded, 'base64').toString('utf8').split(':')
  if (more !== undefined) return false
  const clientId = formDecode(id)
  const client = await store.find('Client', clientId)
  const checks = client?.['managed'] === true && client['introspection'] === true
  if (!checks && isTrusted?.(clientId) !== true) return false
  const known = client?.['client_secret']
  return typeof known === 'string' && timingSafeEqual(digest(known), digest(formDecode(secret)))
}

/** RFC 6749, section 2.3.1. What cannot be decoded is nobody's. */
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
