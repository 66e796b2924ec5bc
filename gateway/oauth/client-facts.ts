import { z } from 'zod'
import { operatorScope } from './client-rules.ts'
import type { OAuthStore } from './oauth-store.ts'

/** The facts about a client on which policies depend. */
export interface ClientFacts {
  /** Tags that an operator has given to the client. */
  tags: readonly string[]
  /** Whether the gateway created the client for its operators. */
  operator: boolean
}

const settings = z.object({ tags: z.array(z.string()).catch([]) })

/** Reads the store each time, so that a changed tag applies to the next decision. */
export async function clientFacts(store: Pick<OAuthStore, 'find'>, clientId: string): Promise<ClientFacts> {
  const [client, ofOperator] = await Promise.all([
    store.find('Client', clientId),
    store.find('ClientSettings', clientId),
  ])
  const scopes = String(client?.['scope'] ?? '').split(' ')
  return {
    tags: settings.safeParse(ofOperator).data?.tags ?? [],
    operator: client?.['managed'] === true && scopes.includes(operatorScope),
  }
}
