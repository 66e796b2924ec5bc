import { millisOf } from '@parley/wire/model/timestamp'
import type { AgentEntry } from '../registry/entry.ts'

export interface AwaitedAgentsOptions {
  /** Host name of this machine, in the same form as `AgentEntry.host`. */
  host: string
  /** Slugs of the agents that this gateway supervises, or undefined if it supervises none. */
  runs: ReadonlySet<string> | undefined
}

/** Time after which an unreachable agent of another gateway is no longer awaited. */
const awayMaxMs = 15 * 60_000

/**
 * Decides which unavailable agents are expected to return. While an agent is awaited, look-ups that it could answer
 * fail instead of reporting "not found".
 */
export class AwaitedAgents {
  readonly #options: AwaitedAgentsOptions
  readonly #leftOut = new Set<string>()

  constructor(options: AwaitedAgentsOptions) {
    this.#options = options
  }

  /** Marks an agent that the supervisor does not start because its settings are missing or invalid. */
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
