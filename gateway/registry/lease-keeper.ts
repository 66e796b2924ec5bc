import type { Log } from '../../shared/process/log.ts'
import type { AgentEntry } from './entry.ts'
import type { Registry } from './registry.ts'

export interface LeaseKeeperOptions {
  registry: Registry
  log: Log
  /** Asks an agent that sends no heartbeats whether it is there. Never rejects; bounded in time and size. */
  probe: (entry: AgentEntry, signal: AbortSignal) => Promise<boolean>
  /** How often leases are looked at. Default a sixth of a lease. */
  everyMs?: number
  /** Probes at the same time. Default 16. */
  probesAtOnce?: number
  now?: () => number
}

/**
 * Watches the leases: marks agents that fell silent, probes those that never sent a heartbeat once a lease, and writes
 * what only memory knows.
 */
export class LeaseKeeper implements AsyncDisposable {
  readonly #options: LeaseKeeperOptions
  readonly #now: () => number
  readonly #probedAt = new Map<string, number>()
  readonly #stopped = new AbortController()
  readonly #timer: NodeJS.Timeout
  #round: Promise<void> = Promise.resolve()
  #busy = false
  #lastRound: number

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#lastRound = this.#now()
    const everyMs = options.everyMs ?? options.registry.leaseMs / 6
    this.#timer = setInterval(() => this.#tick(), everyMs)
    this.#timer.unref()
  }

  /** False when the rounds have stopped coming: three leases without one. */
  get alive(): boolean {
    return this.#now() - this.#lastRound < 3 * this.#options.registry.leaseMs
  }

  /** One round; the timer calls it. */
  async round(): Promise<void> {
    const { registry, log } = this.#options
    await this.#probeSilent()
    for (const entry of registry.expireLeases()) {
      log.warn({ agent: entry.slug, last_seen: entry.lastSeen }, 'agent is unreachable: three leases missed')
    }
    await registry.flush()
    this.#lastRound = this.#now()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopped.abort()
    await this.#round
    await this.#options.registry.flush()
  }

  #tick(): void {
    if (this.#busy) return
    this.#busy = true
    this.#round = this.round()
      .catch((error: unknown) => this.#options.log.error({ err: error }, 'registry could not be written'))
      .finally(() => {
        this.#busy = false
      })
  }

  async #probeSilent(): Promise<void> {
    const { registry, probesAtOnce = 16 } = this.#options
    const due = registry.all().filter((entry) => this.#isDue(entry))
    const next = due.values()
    const line = async () => {
      for (const entry of next) await this.#probeOne(entry)
    }
    await Promise.all(Array.from({ length: Math.min(probesAtOnce, due.length) }, line))
    for (const id of this.#probedAt.keys()) {
      if (registry.find(id) === undefined) this.#probedAt.delete(id)
    }
  }

  #isDue(entry: AgentEntry): boolean {
    if (entry.sendsHeartbeats) return false
    // The port of a process that is gone may be another's by now: only the supervisor brings its agents back.
    if (entry.origin === 'supervised' && entry.status !== 'ready') return false
    return (this.#probedAt.get(entry.id) ?? 0) + this.#options.registry.leaseMs <= this.#now()
  }

  async #probeOne(entry: AgentEntry): Promise<void> {
    if (this.#stopped.signal.aborted) return
    this.#probedAt.set(entry.id, this.#now())
    if (await this.#options.probe(entry, this.#stopped.signal)) this.#options.registry.answered(entry.id)
  }
}
