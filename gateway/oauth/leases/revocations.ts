import { RecentMap } from '@parley/kit/did/recent-map'
import { isKey, keyIdOf, keyModel } from '../clients/long-lived-keys.ts'
import { storedId } from '../exchange/sealed-tokens.ts'
import type { OAuthStore } from '../oauth-store.ts'

/** The model of the marks of tokens that are being revoked. */
const markModel = 'RevokedToken'
/** A gateway that fails between the removal of a token and its invalidation is detected within this time. */
const markSeconds = 300
const tokenModels = new Set(['AccessToken', 'ClientCredentials', 'RefreshToken', keyModel])

type Marks = Pick<OAuthStore, 'upsert' | 'find'>

/**
 * Marks a record before it is removed. A repeated revocation no longer finds the token, but must wait for the holders like
 * the first one. The mark distinguishes it from the revocation of a token that never existed, which has no effect. Tokens
 * that are removed with their grant are marked by their client.
 */
export async function markRemoved(store: Marks, model: string, id: string): Promise<void> {
  if (tokenModels.has(model)) await mark(store, id)
  if (model === 'Grant') await markGrant(store, id)
}

/** Marks the client of a grant. If there is no grant, its removal has marked the client. */
export async function markGrant(store: Marks, grantId: string): Promise<void> {
  const clientId = (await store.find('Grant', grantId))?.['clientId']
  if (typeof clientId === 'string') await markClient(store, clientId)
}

/** Marks all tokens of a client. */
export const markClient = (store: Marks, clientId: string) => mark(store, `c:${clientId}`)

async function mark(store: Marks, id: string): Promise<void> {
  const expiresAt = Math.floor(Date.now() / 1000) + markSeconds
  await store.upsert({ model: markModel, id, payload: { exp: expiresAt }, expiresAt })
}

/**
 * Returns the tag of a token that was removed recently, or may have been removed with a grant of the client or with the
 * client. Undefined for any other token.
 */
export async function tagOfRevoked(
  store: Pick<OAuthStore, 'find'>,
  token: string,
  clientId: string,
): Promise<string | undefined> {
  const id = isKey(token) ? keyIdOf(token) : storedId(token)
  if ((await store.find(markModel, id)) !== undefined) return `t:${id}`
  const client = `c:${clientId}`
  return (await store.find(markModel, client)) === undefined ? undefined : client
}

/** Revocations that a client may request at a time, and the number that is added per second. */
const [burst, perSecond] = [200, 50]
const clientsMax = 10_000

/** Limits the revocations of each client, because all servers that cache introspection responses take part in each one. */
export class RevocationRate {
  readonly #clients = new RecentMap<string, { left: number; at: number }>(clientsMax)
  readonly #refused = new WeakSet<object>()

  /** @param request is remembered if the client has exceeded its rate */
  allows(request: object, clientId: string): boolean {
    const now = performance.now()
    const { left, at } = this.#clients.get(clientId) ?? { left: burst, at: now }
    const available = Math.min(burst, left + ((now - at) / 1000) * perSecond)
    const isAllowed = available >= 1
    this.#clients.set(clientId, { left: isAllowed ? available - 1 : available, at: now })
    if (!isAllowed) this.#refused.add(request)
    return isAllowed
  }

  hasRefused(request: object): boolean {
    return this.#refused.has(request)
  }
}
