import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import { waitAtMost } from '@parley/kit/process/wait-at-most'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'

export interface LeaseKeeperOptions {
  registry: Registry
  log: Log
  /** Checks whether an agent is reachable. Limits the time and size of the response and never rejects. */
  probe: (entry: AgentEntry, signal: AbortSignal) => Promise<boolean>
  /** Called with the result of probing an ejected agent. */
  probed?: (id: string, answers: boolean) => Promise<void>
  /** Whether this gateway is the leader that watches the leases. By default it always is. */
  leads?: () => Promise<boolean>
  /** Interval between rounds. Defaults to a sixth of a lease. */
  everyMs?: number
  /** Maximum number of concurrent probes. Defaults to 16. */
  probesAtOnce?: number
  now?: () => number
}

/** If a round has at most this many probes, they start immediately. Otherwise they are spread over the interval. */
const immediateProbesMax = 64
/** A round probes this many times its even share of agents, which leaves room for agents that become due late. */
const shareFactor = 1.25
/** Fraction of the interval over which a round's probes are spread. */
const spreadFraction = 0.8

/** Once an agent has missed this many leases, it is probed only once per this many leases. */
const longSilentLeases = 10
/** Time limit for the final write on disposal. Losing lease data is acceptable, but a hanging shutdown is not. */
const finalWriteMs = 2000

const finalWriteFailed = 'the final lease data of agents could not be written'

/**
 * Watches the leases. It marks unresponsive agents as unreachable, probes agents without heartbeats once per lease,
 * probes ejected agents when their ejection expires, and writes unsaved lease data. Probes run independently of the
 * rounds, so a slow agent does not delay the others.
 */
export class LeaseKeeper implements AsyncDisposable {
  readonly #options: LeaseKeeperOptions
  readonly #now: () => number
  readonly #probedAt = new Map<string, number>()
  /** Ids of the agents waiting to be probed, in order. */
  readonly #waiting = new Set<string>()
  readonly #probes = new Set<Promise<void>>()
  readonly #stopped = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #everyMs: number
  /** Minimum time between two probes by the same worker. */
  #paceMs = 0
  #round: Promise<void> = Promise.resolve()
  #busy = false
  /** Whether the last write failed. Limits logging to one line per storage outage. */
  #failing = false
  #leading = false
  #graceUntil = 0
  #lastRound: number

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#lastRound = this.#now()
    this.#everyMs = options.everyMs ?? options.registry.leaseMs / 6
    this.#timer = setInterval(() => this.#tick(), this.#everyMs)
    this.#timer.unref()
  }

  /** Becomes false after three leases without a completed round. */
  get alive(): boolean {
    return this.#now() - this.#lastRound < 3 * this.#options.registry.leaseMs
  }

  /** Runs one round. Called by the timer. */
  async round(): Promise<void> {
    const { registry, log } = this.#options
    if (!(await this.#leads())) {
      await registry.flush()
      this.#lastRound = this.#now()
      return
    }
    this.#probeSilent()
    const expired = this.#now() < this.#graceUntil ? [] : registry.expireLeases()
    for (const entry of expired) {
      log.warn({ agent: entry.slug, last_seen: entry.lastSeen }, 'agent is unreachable: three leases missed')
    }
    await registry.flush()
    this.#lastRound = this.#now()
  }

  /** A new leader cannot tell whether heartbeats were lost during the change, so it grants every agent one lease. */
  async #leads(): Promise<boolean> {
    const { leads, registry } = this.#options
    if (leads === undefined) return true
    const led = this.#leading
    this.#leading = await leads()
    if (this.#leading && !led) this.#graceUntil = this.#now() + registry.leaseMs
    return this.#leading
  }

  /** Resolves when no probe is waiting or running. */
  async probed(): Promise<void> {
    while (this.#probes.size > 0) await Promise.all(this.#probes)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopped.abort()
    const { registry, log } = this.#options
    const finalWrite = async () => {
      await this.#round
      await this.probed()
      await registry.flush()
    }
    // If the storage is unavailable, only the most recent lease data is lost.
    const result = await waitAtMost(finalWriteMs, finalWrite()).catch((error: unknown) => error)
    if (result === false) log.warn({ reason: 'the storage does not respond' }, finalWriteFailed)
    else if (result !== true) log.error({ err: result }, finalWriteFailed)
  }

  #tick(): void {
    if (this.#busy) return
    this.#busy = true
    this.#round = this.#oneRound().finally(() => {
      this.#busy = false
    })
  }

  async #oneRound(): Promise<void> {
    try {
      await this.round()
      this.#failing = false
    } catch (error) {
      if (!this.#failing && !this.#stopped.signal.aborted)
        this.#options.log.error({ err: error }, 'registry could not be written')
      this.#failing = true
    }
  }

  #probeSilent(): void {
    const { registry, probesAtOnce = 16 } = this.#options
    for (const id of this.#probedAt.keys()) {
      if (registry.find(id) === undefined) this.#probedAt.delete(id)
    }
    const entries = registry.all()
    let room = Math.max(
      immediateProbesMax,
      Math.ceil((entries.length * shareFactor * this.#everyMs) / registry.leaseMs),
    )
    for (const entry of entries) {
      if (!this.#isDue(entry) || (room <= 0 && !this.#ejectionExpired(entry))) continue
      // The time is set before the probe starts so that a waiting agent is not queued twice.
      this.#probedAt.set(entry.id, this.#now())
      this.#waiting.add(entry.id)
      room -= 1
    }
    const spread = this.#waiting.size > immediateProbesMax
    this.#paceMs = spread ? (spreadFraction * this.#everyMs * probesAtOnce) / this.#waiting.size : 0
    const free = Math.min(probesAtOnce - this.#probes.size, this.#waiting.size)
    for (let n = 0; n < free; n++) this.#startWorker()
  }

  #startWorker(): void {
    const worker: Promise<void> = this.#probeWaiting()
      .catch((error: unknown) => this.#options.log.error({ err: error }, 'agents could not be probed'))
      .finally(() => this.#probes.delete(worker))
    this.#probes.add(worker)
  }

  async #probeWaiting(): Promise<void> {
    for (const id of this.#waiting) {
      this.#waiting.delete(id)
      if (this.#stopped.signal.aborted) return
      const began = performance.now()
      await this.#probeOne(id)
      await this.#pause(this.#paceMs - (performance.now() - began))
    }
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#stopped
    if (ms > 0) await wait(ms, undefined, { signal }).catch(() => {})
  }

  #isDue(entry: AgentEntry): boolean {
    if (this.#ejectionExpired(entry)) return !this.#waiting.has(entry.id)
    if (entry.sendsHeartbeats || !entry.admitted || this.#waiting.has(entry.id)) return false
    // Another server may reuse the port of a stopped process, so only the supervisor marks its agents as ready.
    if (entry.origin === 'supervised' && entry.status !== 'ready') return false
    const { leaseMs } = this.#options.registry
    const isLongSilent = entry.leaseUntil + longSilentLeases * leaseMs <= this.#now()
    const every = isLongSilent ? longSilentLeases * leaseMs : leaseMs
    return (this.#probedAt.get(entry.id) ?? 0) + every <= this.#now()
  }

  /** Whether the ejection has expired. The agent must then answer a probe before it receives work again. */
  #ejectionExpired({ quarantine, admitted, status }: AgentEntry): boolean {
    const until = quarantine?.by === undefined ? quarantine?.until : undefined
    return until !== undefined && admitted && status === 'ready' && until <= this.#now()
  }

  async #probeOne(id: string): Promise<void> {
    const { registry, probe } = this.#options
    const entry = registry.find(id)
    if (entry === undefined) return
    const wasEjected = this.#ejectionExpired(entry)
    const answers = await probe(entry, this.#stopped.signal)
    if (this.#stopped.signal.aborted) return
    if (wasEjected) await this.#options.probed?.(id, answers)
    // The agent's address may have changed during the probe.
    if (answers && registry.find(id)?.url === entry.url) registry.probeSucceeded(id)
  }
}
