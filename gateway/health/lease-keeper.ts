import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import { waitAtMost } from '@parley/kit/process/wait-at-most'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'

export interface LeaseKeeperOptions {
  registry: Registry
  log: Log
  /** Asks an agent that sends no heartbeats whether it is there. Never rejects; bounded in time and size. */
  probe: (entry: AgentEntry, signal: AbortSignal) => Promise<boolean>
  /** Told what came of asking an agent that was set aside. Default: nobody. */
  probed?: (id: string, answers: boolean) => Promise<void>
  /** Whether this gateway is the one of several that does it. Default: it is the only one. */
  leads?: () => Promise<boolean>
  /** How often leases are looked at. Default a sixth of a lease. */
  everyMs?: number
  /** Probes at the same time. Default 16. */
  probesAtOnce?: number
  now?: () => number
}

/** So many probes of a round are asked as quickly as they are answered; those of more agents are spread over a lease. */
const probesUnspread = 64
/** More of the agents than their even share, for those that come due late. */
const roundShare = 1.25
/** How much of the time until the next round its probes are spread over. */
const spreadShare = 0.8

/** An agent that has been silent for so many leases is asked only once in as many. */
const longSilent = 10
/** What the last round and the last signs of life may take at the end: they may be lost, the stop may not take long. */
const lastWordMs = 2000

const lost = 'the last signs of life of agents could not be written'

/**
 * Watches the leases: marks agents that fell silent, probes those that never sent a heartbeat once a lease, and writes
 * what only memory knows. Agents that were set aside are asked once their time is over. Probes run beside the rounds: agents that take their time hold up nobody.
 */
export class LeaseKeeper implements AsyncDisposable {
  readonly #options: LeaseKeeperOptions
  readonly #now: () => number
  readonly #probedAt = new Map<string, number>()
  /** Agents that wait for their probe, in order. */
  readonly #waiting = new Set<string>()
  readonly #probes = new Set<Promise<void>>()
  readonly #stopped = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #everyMs: number
  /** From one probe of a line to its next. */
  #paceMs = 0
  #round: Promise<void> = Promise.resolve()
  #busy = false
  /** One line for an outage of the storage. */
  #failing = false
  #leading = false
  #patientUntil = 0
  #lastRound: number

  constructor(options: LeaseKeeperOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#lastRound = this.#now()
    this.#everyMs = options.everyMs ?? options.registry.leaseMs / 6
    this.#timer = setInterval(() => this.#tick(), this.#everyMs)
    this.#timer.unref()
  }

  /** False when the rounds have stopped coming: three leases without one. */
  get alive(): boolean {
    return this.#now() - this.#lastRound < 3 * this.#options.registry.leaseMs
  }

  /** One round; the timer calls it. */
  async round(): Promise<void> {
    const { registry, log } = this.#options
    if (!(await this.#leads())) {
      await registry.flush()
      this.#lastRound = this.#now()
      return
    }
    this.#probeSilent()
    const lost = this.#now() < this.#patientUntil ? [] : registry.expireLeases()
    for (const entry of lost) {
      log.warn({ agent: entry.slug, last_seen: entry.lastSeen }, 'agent is unreachable: three leases missed')
    }
    await registry.flush()
    this.#lastRound = this.#now()
  }

  /** Who begins to lead does not know whether anybody was there to be told: the agents get time to tell. */
  async #leads(): Promise<boolean> {
    const { leads, registry } = this.#options
    if (leads === undefined) return true
    const led = this.#leading
    this.#leading = await leads()
    if (this.#leading && !led) this.#patientUntil = this.#now() + registry.leaseMs
    return this.#leading
  }

  /** When the probes that wait or run have come to an end. */
  async probed(): Promise<void> {
    while (this.#probes.size > 0) await Promise.all(this.#probes)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopped.abort()
    const { registry, log } = this.#options
    const lastWord = async () => {
      await this.#round
      await this.probed()
      await registry.flush()
    }
    // The storage is away: nothing but these is lost by that.
    const said = await waitAtMost(lastWordMs, lastWord()).catch((error: unknown) => error)
    if (said === false) log.warn({ reason: 'the storage does not answer' }, lost)
    else if (said !== true) log.error({ err: said }, lost)
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
      probesUnspread,
      Math.ceil((entries.length * roundShare * this.#everyMs) / registry.leaseMs),
    )
    for (const entry of entries) {
      if (!this.#isDue(entry) || (room <= 0 && !this.#mayComeBack(entry))) continue
      // From now on, so that none is asked twice while it waits.
      this.#probedAt.set(entry.id, this.#now())
      this.#waiting.add(entry.id)
      room -= 1
    }
    const spread = this.#waiting.size > probesUnspread
    this.#paceMs = spread ? (spreadShare * this.#everyMs * probesAtOnce) / this.#waiting.size : 0
    const free = Math.min(probesAtOnce - this.#probes.size, this.#waiting.size)
    for (let line = 0; line < free; line++) this.#startLine()
  }

  #startLine(): void {
    const line: Promise<void> = this.#probeWaiting()
      .catch((error: unknown) => this.#options.log.error({ err: error }, 'agents could not be probed'))
      .finally(() => this.#probes.delete(line))
    this.#probes.add(line)
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
    if (this.#mayComeBack(entry)) return !this.#waiting.has(entry.id)
    if (entry.sendsHeartbeats || !entry.admitted || this.#waiting.has(entry.id)) return false
    // The port of a process that is gone may be another's by now: only the supervisor brings its agents back.
    if (entry.origin === 'supervised' && entry.status !== 'ready') return false
    const { leaseMs } = this.#options.registry
    const isLongSilent = entry.leaseUntil + longSilent * leaseMs <= this.#now()
    const every = isLongSilent ? longSilent * leaseMs : leaseMs
    return (this.#probedAt.get(entry.id) ?? 0) + every <= this.#now()
  }

  /** Its time aside is over; whether it answers shall be known before it gets work. */
  #mayComeBack({ quarantine, admitted, status }: AgentEntry): boolean {
    const until = quarantine?.by === undefined ? quarantine?.until : undefined
    return until !== undefined && admitted && status === 'ready' && until <= this.#now()
  }

  async #probeOne(id: string): Promise<void> {
    const { registry, probe } = this.#options
    const entry = registry.find(id)
    if (entry === undefined) return
    const wasAside = this.#mayComeBack(entry)
    const answers = await probe(entry, this.#stopped.signal)
    if (this.#stopped.signal.aborted) return
    if (wasAside) await this.#options.probed?.(id, answers)
    // It may have moved meanwhile: what answered is no longer where it is.
    if (answers && registry.find(id)?.url === entry.url) registry.answered(id)
  }
}
