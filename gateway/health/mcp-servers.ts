import { RecentMap } from '@parley/kit/did/recent-map'
import { ParleyError } from '@parley/wire/errors'
import type { AgentEntry } from '../registry/entry.ts'
import type { ForeignCardsOptions } from './foreign-cards.ts'

/** How long changes of a server are not read again after they were refused. */
const failedMs = 600_000
const serversMax = 20_000

/** Probes MCP servers by their lists of tools, which are read into the registry when they have changed. */
export class McpServers {
  readonly #options: ForeignCardsOptions
  /** The servers with changes that the registry refuses, with the time until which they are not read, by `performance.now()`. */
  readonly #refused = new RecentMap<string, number>(serversMax)

  constructor(options: ForeignCardsOptions) {
    this.#options = options
  }

  /** Returns whether the server answers. Never rejects. */
  async probe({ id, slug, card }: Pick<AgentEntry, 'id' | 'slug' | 'card'>): Promise<boolean> {
    const { renew, log } = this.#options
    if (performance.now() < (this.#refused.get(id) ?? 0)) return true
    try {
      const entry = await renew(id)
      if (entry !== undefined && entry.card !== card)
        log.info({ agent: slug, admitted: entry.admitted }, 'the tools of an MCP server have changed')
      return true
    } catch (error) {
      const reason = error instanceof ParleyError ? error.data['reason'] : undefined
      // It answers, and calls report that it does not accept the credential.
      if (reason === 'credential') return true
      if (!(error instanceof ParleyError) || error.error === 'InvalidParams') return false
      this.#refused.set(id, performance.now() + failedMs)
      log.warn({ err: error, agent: slug }, 'the changed tools of an MCP server are not accepted')
      return true
    }
  }
}
