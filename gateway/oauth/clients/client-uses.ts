import { RecentMap } from '@parley/kit/did/recent-map'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import type { Log } from '@parley/kit/process/log'
import { z } from 'zod'
import type { OAuthStore } from '../oauth-store.ts'

const model = 'ClientUse'
const hourSeconds = 3600
const keptSeconds = 400 * 24 * hourSeconds
const clientsMax = 10_000

const clientUse = z.object({ lastTokenAt: z.number().optional(), lastUsedAt: z.number().optional() })
/** When the client last got a token and last used one, in seconds since 1970, rounded down to the hour. */
export type ClientUse = z.infer<typeof clientUse>

/** Records when clients get and use tokens, with at most one write per hour, client and process for each. */
export class ClientUses {
  readonly #store: OAuthStore
  readonly #log: Log
  readonly #noted = new RecentMap<string, number>(2 * clientsMax)
  readonly #mutex = new KeyedMutex()

  constructor(store: OAuthStore, log: Log) {
    this.#store = store
    this.#log = log
  }

  /** Runs in the background. A failure is logged, because the request does not depend on it. */
  note(kind: keyof ClientUse, clientId: string): void {
    const hour = Math.floor(Date.now() / 1000 / hourSeconds) * hourSeconds
    const key = `${kind} ${clientId}`
    if (this.#noted.get(key) === hour) return
    this.#noted.set(key, hour)
    this.#mutex
      .run([clientId], () => this.#write(clientId, { [kind]: hour }))
      .catch((error: unknown) => {
        this.#noted.delete(key)
        this.#log.debug({ err: error }, 'the last use of an OAuth client could not be stored')
      })
  }

  async find(clientId: string): Promise<ClientUse> {
    return clientUse.safeParse(await this.#store.find(model, clientId)).data ?? {}
  }

  async forget(clientId: string): Promise<void> {
    await this.#store.destroy(model, clientId)
  }

  async #write(id: string, use: ClientUse): Promise<void> {
    const payload = { ...(await this.find(id)), ...use }
    const expiresAt = Math.floor(Date.now() / 1000) + keptSeconds
    await this.#store.upsert({ model, id, payload, expiresAt })
  }
}
