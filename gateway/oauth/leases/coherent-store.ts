import { Provider } from 'oidc-provider'
import { settingsModel } from '../clients/client-settings.ts'
import { keyModel } from '../clients/long-lived-keys.ts'
import { revocationModel } from '../introspect.ts'
import type { OAuthEntry, OAuthStore } from '../oauth-store.ts'
import type { Leases } from './leases.ts'
import { markClient, markGrant, markRemoved } from './revocations.ts'

/** The prefix of the tag of a record, by model. Introspection responses depend on no other models. */
const tagPrefixes: Readonly<Record<string, string>> = {
  AccessToken: 't',
  ClientCredentials: 't',
  Grant: 'g',
  Client: 'c',
  [keyModel]: 't',
  [settingsModel]: 'c',
}

/** Requests that have invalidated responses. */
const invalidating = new WeakSet<object>()

/** Whether the request has invalidated responses, and has waited until they are not used any longer. */
export function hasInvalidated(request: object): boolean {
  return invalidating.has(request)
}

/** A change whose outcome is unknown may take effect until this time after the call. */
const lateChangeMs = 15_000

/**
 * Invalidates cached introspection responses with each change that may remove access. Such a call resolves when no
 * server uses an outdated response any longer.
 */
export function coherentStore(store: OAuthStore, leases: Pick<Leases, 'invalidate'>): OAuthStore {
  const changing = async <T>(tags: string[], change: Promise<T>): Promise<T> => {
    if (tags.length === 0) return change
    try {
      const result = await change
      await leases.invalidate(tags)
      if (Provider.ctx !== undefined) invalidating.add(Provider.ctx)
      return result
    } catch (error) {
      const again = () => void leases.invalidate(tags).catch(() => {})
      again()
      setTimeout(again, lateChangeMs).unref()
      throw error
    }
  }
  return {
    upsert: (entry) => changing(tagsOfWrite(entry), store.upsert(entry)),
    // A new client has no responses yet.
    insert: (entry) => changing(entry.model === 'Client' ? [] : tagsOfWrite(entry), store.insert(entry)),
    exchange: (model, id, was, payload) =>
      changing(tagsOf(model, id), store.exchange(model, id, was, payload)),
    find: (model, id) => store.find(model, id),
    list: (model, clientId) => store.list(model, clientId),
    findByUid: (model, uid) => store.findByUid(model, uid),
    findByUserCode: (model, userCode) => store.findByUserCode(model, userCode),
    consume: (model, id, at) => store.consume(model, id, at),
    destroy: (model, id) =>
      changing(
        tagsOf(model, id),
        markRemoved(store, model, id).then(() => store.destroy(model, id)),
      ),
    revokeByGrantId: (grantId) =>
      changing(
        [`g:${grantId}`],
        markGrant(store, grantId).then(() => store.revokeByGrantId(grantId)),
      ),
    revokeByClientId: (clientId) =>
      changing(
        [`c:${clientId}`],
        markClient(store, clientId).then(() => store.revokeByClientId(clientId)),
      ),
    sweepExpired: (before, limit) => store.sweepExpired(before, limit),
  }
}

function tagsOf(model: string, id: string): string[] {
  const prefix = tagPrefixes[model]
  return prefix === undefined ? [] : [`${prefix}:${id}`]
}

function tagsOfWrite({ model, id }: OAuthEntry): string[] {
  // The record revokes the exchanged token with its id.
  if (model === revocationModel) return [`t:${id}`]
  // A new version of a client or of its settings may allow less access.
  return model === 'Client' || model === settingsModel ? [`c:${id}`] : []
}
