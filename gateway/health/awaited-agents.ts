import { millisOf } from '@parley/wire/model/timestamp'
import type { AgentEntry } from '../registry/entry.ts'

export interface AwaitedAgentsOptions {
  /** This machine, as in `AgentEntry.host`. */
  host: string
  /** Slugs of the agents that this gateway's supervisor runs; undefined: it runs none. */
  runs: ReadonlySet<string> | undefined
}

/** An agent that another gateway runs is no longer awaited once it has been unreachable for this time. */
const awayMaxMs = 15 * 60_000

/** Which agents that do not answer are expected back: look-ups fail rather than report missing what these may have. */
export class AwaitedAgents {
  readonly #options: AwaitedAgentsOptions
  readonly #leftOut = new Set<string>()

  constructor(options: AwaitedAgentsOptions) {
    this.#options = options
  }

  /** The supervisor does not start it, for its settings are missing or wrong. */
  leaveOut(slug: string): void {
    this.#leftOut.add(slug)
  }

  isAwaited(entry: Pick<AgentEntry, 'slug' | 'origin' | 'host' | 'status' | 'since'>): boolean {
    const { host, runs } = this.#options
    if (entry.status === 'ready') return true
    const isOurs = entry.origin === 'supervised' && (entry.host === undefined || entry.host === host)
    if (runs !== undefined && isOurs) return runs.has(entry.slug) && !this.#leftOut.has(entry.slug)
    return entry.status === 'starting' || millisOf(entry.since) > Date.now() - awayMaxMs
  }
}
