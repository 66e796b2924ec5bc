import { operatorScope } from './client-rules.ts'
import { findSettings } from './clients/client-settings.ts'
import type { OAuthStore } from './oauth-store.ts'

/** The facts about a client on which policies depend. */
export interface ClientFacts {
  /** Tags that an operator has given to the client. */
  tags: readonly string[]
  /** Whether the gateway created the client for its operators. */
  operator: boolean
}

/** Reads the store each time, so that a changed tag applies to the next decision. */
export async function clientFacts(store: Pick<OAuthStore, 'find'>, clientId: string): Promise<ClientFacts> {
  const [client, settings] = await Promise.all([
    store.find('Client', clientId),
    findSettings(store, clientId),
  ])
  const scope = client?.['scope']
  return {
    tags: settings?.tags ?? [],
    operator:
      client?.['managed'] === true && typeof scope === 'string' && scope.split(' ').includes(operatorScope),
  }
}
