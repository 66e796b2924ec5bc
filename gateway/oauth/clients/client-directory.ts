import { z } from 'zod'
import type { OAuthStore } from '../oauth-store.ts'
import { type ClientSettings, commonScope, readSettings, settingsModel } from './client-settings.ts'
import type { ClientUse, ClientUses } from './client-uses.ts'
import { documentClientModel, type Provenance } from './unverified-client.ts'

const storedClient = z.object({
  client_id: z.string(),
  client_name: z.string().default(''),
  scope: z.string().default(''),
  managed: z.boolean().default(false),
  client_id_issued_at: z.number().optional(),
  dpop_bound_access_tokens: z.boolean().default(false),
  provenance: z.enum(['open', 'document']).optional(),
})
/** The models of clients. Those with a metadata document are stored when a person has approved them. */
const clientModels = ['Client', documentClientModel]
type StoredClient = z.infer<typeof storedClient>

/** A client as an operator sees it. It contains no secrets. */
export interface ListedClient extends ClientUse {
  id: string
  name: string
  /** The scopes that the client has registered. Its settings may allow fewer. */
  scope: string
  /** Whether the gateway created the client for itself, an agent or the operator. */
  managed: boolean
  /** Set for a client that no operator has registered. */
  provenance?: Provenance
  /** Whether all tokens of the client are bound to a key. */
  isSenderConstrained: boolean
  /** Seconds since 1970. Unknown for managed clients. */
  createdAt?: number
  settings: ClientSettings
}

export interface ClientLimits
  extends Pick<ClientSettings, 'scope' | 'requestsPerMinute' | 'expiresAt' | 'resources'> {}

/** Lists the clients of the OAuth server, and stores operators' decisions about them. */
export class ClientDirectory {
  readonly #store: OAuthStore
  readonly #uses: ClientUses

  constructor(store: OAuthStore, uses: ClientUses) {
    this.#store = store
    this.#uses = uses
  }

  /** Lists clients in the order of their ids. @param options.after the id that precedes the page */
  async list(options: { after?: string; limit: number; words?: string }): Promise<{
    clients: ListedClient[]
    hasMore: boolean
  }> {
    const { after = '', limit, words = '' } = options
    const text = words.toLowerCase()
    const found = await Promise.all(clientModels.map((model) => this.#store.list(model)))
    const all = found.flat().map((client) => storedClient.parse(client))
    const matches = all.filter(
      ({ client_id: id, client_name: name }) => id > after && `${id} ${name}`.toLowerCase().includes(text),
    )
    matches.sort((a, b) => (a.client_id < b.client_id ? -1 : 1))
    const clients = await Promise.all(matches.slice(0, limit).map((client) => this.#listed(client)))
    return { clients, hasMore: matches.length > limit }
  }

  async find(id: string): Promise<ListedClient | undefined> {
    const client = await this.#find(id)
    return client && this.#listed(storedClient.parse(client))
  }

  /** Replaces all limits of the client. Tokens and keys that exist already are limited too. */
  limit(id: string, limits: ClientLimits): Promise<ListedClient | undefined> {
    return this.#change(id, ({ disabled, tags }) => ({ ...limits, disabled, tags }))
  }

  tag(id: string, tags: readonly string[]): Promise<ListedClient | undefined> {
    return this.#change(id, (settings) => ({ ...settings, tags: [...new Set(tags)] }))
  }

  /** Disables the client, and removes its tokens, keys and approvals. */
  async revoke(id: string): Promise<ListedClient | undefined> {
    const changed = await this.#change(id, (settings) => ({ ...settings, disabled: true }))
    // Introspection has refused the tokens since the change, so a failure here leaves no token active.
    if (changed !== undefined) await this.#store.revokeByClientId(id)
    return changed
  }

  enable(id: string): Promise<ListedClient | undefined> {
    return this.#change(id, ({ disabled: _disabled, ...settings }) => settings)
  }

  /** Removes the client and operators' decisions about it. It may register again. Returns false if there is none. */
  async remove(id: string): Promise<boolean> {
    if ((await this.revoke(id)) === undefined) return false
    for (const model of clientModels) await this.#store.destroy(model, id)
    // A token request that began before the removal may have stored another token.
    await this.#store.revokeByClientId(id)
    await this.#store.destroy(settingsModel, id)
    await this.#uses.forget(id)
    return true
  }

  async #find(id: string): Promise<Record<string, unknown> | undefined> {
    for (const model of clientModels) {
      const found = await this.#store.find(model, id)
      if (found !== undefined) return found
    }
    return undefined
  }

  async #change(
    id: string,
    edit: (settings: ClientSettings) => { [K in keyof ClientSettings]: ClientSettings[K] | undefined },
  ): Promise<ListedClient | undefined> {
    for (;;) {
      const [client, was] = await Promise.all([this.#find(id), this.#store.find(settingsModel, id)])
      if (client === undefined) return undefined
      const payload: Record<string, unknown> = edit(readSettings(was ?? {}))
      const isWritten =
        was === undefined
          ? await this.#store.insert({ model: settingsModel, id, payload })
          : await this.#store.exchange(settingsModel, id, was, payload)
      if (isWritten) return this.#listed(storedClient.parse(client))
    }
  }

  async #listed({ client_id: id, client_name: name, ...client }: StoredClient): Promise<ListedClient> {
    const [settings, uses] = await Promise.all([this.#store.find(settingsModel, id), this.#uses.find(id)])
    const { scope, managed, client_id_issued_at: createdAt, provenance } = client
    return {
      id,
      name,
      scope,
      managed,
      ...(provenance !== undefined && { provenance }),
      isSenderConstrained: client.dpop_bound_access_tokens,
      ...(createdAt !== undefined && { createdAt }),
      ...uses,
      settings: readSettings(settings ?? {}),
    }
  }
}

/** The scopes that the client may use. */
export function usableScope({ scope, settings }: ListedClient): string {
  return settings.scope === undefined ? scope : commonScope(scope, settings.scope)
}
