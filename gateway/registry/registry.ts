import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import { timestamp } from '@parley/wire/model/timestamp'
import {
  type Admitting,
  admission,
  checksTokens,
  isAdmittedAs,
  isDecided,
  stillAdmitted,
  withoutEjection,
} from './admission.ts'
import { cardChanges } from './card-changes.ts'
import type { AgentEntry, AgentStatus, Announcement, Blank, Load, Measurements } from './entry.ts'
import { present } from './entry.ts'
import { EntryRepository } from './entry-repository.ts'
import type { RegistryOptions } from './registry-options.ts'
import { leaseOf, replicasMax, tooManyReplicas, withReplica, withReplicas } from './replicas.ts'
import { hasChanged, isFormerIdentity, isReplaceable, sameAgent, slugTaken } from './same-agent.ts'
import { idOfKey, slugOf } from './slug.ts'
import type { RegistryStore } from './store.ts'

export type { Announcement } from './entry.ts'

/**
 * The agents that the gateway knows. Reads are from memory; who an agent is and whether it may work is durable before the
 * promise resolves; leases and load are written with `flush`, for a heartbeat lost in a crash is made good by the next.
 * Where several gateways share the store, `sync` takes in what the others wrote.
 */
export class Registry {
  readonly leaseMs: number
  readonly #leasesMissed: number
  readonly #reserved: ReadonlySet<string>
  readonly #now: () => number
  readonly #store: RegistryStore
  readonly #kept: EntryRepository

  private constructor(store: RegistryStore, kept: EntryRepository, options: RegistryOptions) {
    this.#store = store
    this.#kept = kept
    this.leaseMs = options.leaseMs ?? 30_000
    this.#leasesMissed = options.leasesMissed ?? 3
    this.#reserved = options.reserved ?? new Set()
    this.#now = options.now ?? Date.now
  }

  /**
   * Reads the entries of an earlier run. Their leases begin anew: while the gateway was away nobody could renew one. Where
   * the store is shared others were there: whoever watches the leases gives them time.
   */
  static async open(store: RegistryStore, options: RegistryOptions = {}): Promise<Registry> {
    const registry = new Registry(store, new EntryRepository(store, await store.all()), options)
    for (const entry of registry.all()) {
      if (entry.origin === 'supervised') {
        const ours = entry.host === undefined || options.host === undefined || entry.host === options.host
        if (options.supervises !== false && ours) registry.#gone(entry)
        continue
      }
      const admitted = stillAdmitted(entry, options.open !== false)
      if (!store.shared) registry.#sign({ ...entry, admitted, leaseUntil: registry.#leaseEnd() })
      else if (admitted !== entry.admitted) await registry.#change(entry.id, { admitted })
    }
    return registry
  }

  get #index() {
    return this.#kept.index
  }

  /** Other gateways write too: what they wrote is taken in by `sync`. */
  get shared(): boolean {
    return this.#store.shared
  }

  /** Calls `listen` after each change made here that the other gateways shall hear of at once. One listener. */
  onWritten(listen: () => void): void {
    this.#kept.written = listen
  }

  /** Calls `listen` with every entry there is, and with each change from now on; undefined: gone, or left. One listener. */
  follow(listen: (id: string, entry: AgentEntry | undefined) => void): void {
    this.#index.changed = (id, entry) => listen(id, present(entry))
    for (const entry of this.all()) listen(entry.id, entry)
  }

  /** By slug, DID or id. */
  find(name: string): AgentEntry | undefined {
    return present(this.#index.find(name))
  }

  /** As `find`; what another gateway may have entered just now is looked for in the store. */
  async findOrSync(name: string, replicaId?: string): Promise<AgentEntry | undefined> {
    const there = () => {
      const entry = this.find(name)
      const knows = replicaId === undefined || entry?.replicas?.some(({ id }) => id === replicaId)
      return knows === true ? entry : undefined
    }
    if (this.shared && there() === undefined) await this.sync()
    return this.find(name)
  }

  /** As `find`, those that left too: they hold their slug, DID and address. For operators. */
  findIncludingLeft(name: string): AgentEntry | undefined {
    return this.#index.find(name)
  }

  bySlug(slug: string): AgentEntry | undefined {
    return present(this.#index.bySlug(slug))
  }

  /** Ordered by slug. */
  all(): readonly AgentEntry[] {
    return this.#index.all().filter((entry) => entry.left === undefined)
  }

  /** Those that left, and are kept for what was decided about them; ordered by slug. */
  left(): readonly AgentEntry[] {
    return this.#index.all().filter((entry) => entry.left !== undefined)
  }

  /** Agents that may be given work, whether they answer now or not. */
  admitted(): AgentEntry[] {
    return this.all().filter((entry) => entry.admitted)
  }

  /** Whether this client is an agent that may check the tokens of its callers. */
  isTrusted(clientId: string): boolean {
    const entry = clientId.startsWith('did:') ? this.find(clientId) : undefined
    return entry?.owner === clientId && checksTokens(entry)
  }

  /**
   * Makes an entry, or renews the one of the same agent (the same DID; without DID the same slug and address).
   * @throws ParleyError Conflict when DID, slug or address are another agent's, InvalidParams for a name without letters
   * or digits, or one that is a UUID.
   */
  register(announcement: Announcement): Promise<AgentEntry> {
    return this.#kept.serialize(() => this.#register(announcement))
  }

  async #register({ replicaId, ...announcement }: Announcement): Promise<AgentEntry> {
    const slug = slugOf(announcement.name)
    if (slug === undefined) {
      throw new ParleyError('InvalidParams', {
        message: 'The name of an agent needs a letter or a digit, and is no UUID',
      })
    }
    if (announcement.origin === 'supervised') await this.#makeWay(announcement, slug)
    const { url, did = '' } = announcement
    for (const stale of [this.#index.byUrl(url), this.#index.byDid(did)])
      if (stale !== undefined && isReplaceable(stale, announcement)) await this.#kept.forget(stale.id)
    const known = sameAgent(this.#index, announcement, slug)
    if (known === undefined && announcement.origin === 'registered' && this.#reserved.has(slug))
      throw slugTaken(slug)
    const of: Blank & Partial<AgentEntry> = known ?? this.#blank(announcement, slug)
    const { left: _, ...before } = withoutEjection(of, announcement)
    const entry: AgentEntry = {
      ...before,
      ...announcement,
      ...admission(known, announcement),
      ...(known !== undefined && { cardChanges: cardChanges(known, announcement) }),
      verified: announcement.verified || known?.verified === true,
      status: 'ready',
      since: known?.status === 'ready' && known.left === undefined ? known.since : timestamp(),
      lastSeen: timestamp(),
      leaseUntil: this.#leaseEnd(),
    }
    const whole = this.#asReplica(entry, announcement, replicaId)
    return known === undefined ? this.#kept.add(whole) : this.#kept.save(whole)
  }

  /** A process beside others, if it has proven the agent's key; without proof, or without id, it is the whole agent. */
  #asReplica(entry: AgentEntry, { url, verified }: Announcement, id: string | undefined): AgentEntry {
    if (id === undefined || !verified) return { ...withReplicas(entry, []), url }
    const others = (entry.replicas ?? []).filter((one) => this.#isFresh(one.leaseUntil))
    if (others.filter((one) => one.id !== id && one.url !== url).length >= replicasMax)
      throw tooManyReplicas()
    const replica = { id, url, load: {}, lastSeen: timestamp(), leaseUntil: this.#leaseEnd() }
    return withReplica(withReplicas(entry, others), replica)
  }

  /** A stranger that came first under the name of an agent of the house goes on under another; who it was before goes. */
  async #makeWay(coming: Announcement, slug: string): Promise<void> {
    const holder = this.#index.bySlug(slug)
    const isKnown = coming.did !== undefined && this.#index.byDid(coming.did) !== undefined
    if (isKnown || holder === undefined) return
    if (holder.origin !== 'supervised') await this.#kept.amend({ ...holder, slug: this.#freeSlug(slug) })
    else if (isFormerIdentity(holder, coming)) await this.#kept.forget(holder.id)
  }

  #freeSlug(taken: string): string {
    for (let number = 2; ; number++) {
      const slug = `${taken.slice(0, 56)}-${number}`
      if (this.#index.bySlug(slug) === undefined && !this.#reserved.has(slug)) return slug
    }
  }

  /** From now on it gets work. @throws ParleyError Conflict when it is not, or no longer, what it shall be admitted as */
  admit(id: string, by: string, as: Admitting = {}): Promise<AgentEntry> {
    const fields = { admitted: true, admittedBy: by, own: as.own ?? false, cardChanges: [] }
    return this.#change(id, fields, (entry) => isAdmittedAs(entry, as))
  }

  quarantine(id: string, by: string, reason: string): Promise<AgentEntry> {
    return this.#change(id, { quarantine: { since: timestamp(), reason, by } })
  }

  /**
   * Sets it aside until `until` (milliseconds since 1970), because it failed again and again. What an operator decided
   * stays as it is. False when there is nothing to set aside.
   */
  async eject(id: string, reason: string, until: number): Promise<boolean> {
    return this.#kept.serialize(async () => {
      const entry = this.#index.byId(id)
      if (entry === undefined || entry.quarantine?.by !== undefined) return false
      await this.#kept.amend({ ...entry, quarantine: { since: timestamp(), reason, until } })
      return true
    })
  }

  /** It answered its probe after a time aside that nobody but the gateway had decided. */
  async reinstate(id: string): Promise<boolean> {
    return this.#kept.serialize(async () => {
      const { quarantine, ...entry } = this.#get(id)
      if (quarantine === undefined || quarantine.by !== undefined) return false
      await this.#kept.amend(entry)
      return true
    })
  }

  /** What was seen of it; written with `flush`. */
  measured(id: string, measurements: Measurements): void {
    const entry = this.#index.byId(id)
    if (entry !== undefined) this.#sign({ ...entry, measurements })
  }

  release(id: string): Promise<AgentEntry> {
    return this.#kept.serialize(() => {
      const { quarantine: _, ...entry } = this.#get(id)
      return this.#kept.amend(entry)
    })
  }

  /** It says goodbye by itself. What an operator decided about it holds when it comes again. */
  leave(id: string): Promise<void> {
    return this.#kept.serialize(async () => {
      const entry = this.#get(id)
      if (isDecided(entry)) await this.#kept.save({ ...entry, left: timestamp(), status: 'unreachable' })
      else await this.#kept.forget(id)
    })
  }

  #change(
    id: string,
    fields: Partial<AgentEntry>,
    isSeen?: (entry: AgentEntry) => boolean,
  ): Promise<AgentEntry> {
    return this.#kept.serialize(() => {
      const entry = this.#get(id)
      if (isSeen?.(entry) === false) throw hasChanged()
      return this.#kept.amend({ ...entry, ...fields })
    })
  }

  #blank(announcement: Announcement, slug: string): Blank {
    const ownId = idOfKey(announcement)
    const isFree = ownId !== undefined && this.#index.byId(ownId) === undefined
    const id = isFree ? ownId : randomUUID()
    return { id, slug, registeredAt: timestamp(), sendsHeartbeats: false, load: {} }
  }

  /**
   * Renews the lease. Figures that the heartbeat does not name keep their last value. Returns what was known of the load
   * of this process, and what is known now.
   * @throws ParleyError NotFound, also for a replica that is not known (any more): it registers again
   */
  heartbeat(id: string, load: Load, replicaId?: string): { entry: AgentEntry; before: Load; now: Load } {
    const entry = this.#get(id)
    if (replicaId === undefined) {
      const now = { ...entry.load, ...load }
      return { entry: this.#seen({ ...entry, sendsHeartbeats: true, load: now }), before: entry.load, now }
    }
    const known = entry.replicas?.find((one) => one.id === replicaId)
    if (known === undefined) throw new ParleyError('NotFound', { data: { reason: 'replica' } })
    const now = { ...known.load, ...load }
    const replica = { ...known, load: now, lastSeen: timestamp(), leaseUntil: this.#leaseEnd() }
    const seen = this.#seen({ ...withReplica(entry, replica), sendsHeartbeats: true }, replicaId)
    return { entry: seen, before: known.load, now }
  }

  /** One of its processes says goodbye; the last one takes the agent with it. */
  async leaveAs(id: string, replicaId: string): Promise<void> {
    const entry = this.#get(id)
    const others = entry.replicas?.filter((one) => one.id !== replicaId) ?? []
    if (others.length === 0) return this.leave(id)
    this.#kept.sign(withReplicas(entry, others), { gone: [replicaId] })
    await this.flush()
  }

  /** A process of it is gone; the agent is there as long as another one is. */
  processGone(id: string, replicaId: string | undefined, status: AgentStatus): void {
    const entry = this.#index.byId(id)
    if (entry === undefined) return
    const others = entry.replicas?.filter((one) => one.id !== replicaId) ?? []
    if (replicaId !== undefined && entry.replicas !== undefined) {
      this.#kept.sign(withReplicas(entry, others), { gone: [replicaId] })
    }
    if (others.length === 0) this.setStatus(id, status)
  }

  /** It answered a probe: as good as a heartbeat. */
  answered(id: string): void {
    const entry = this.#index.byId(id)
    if (entry !== undefined) this.#seen(entry)
  }

  setStatus(id: string, status: AgentStatus): void {
    const entry = this.#index.byId(id)
    if (entry === undefined || entry.status === status) return
    this.#sign({ ...entry, status, since: timestamp() })
  }

  /** Marks the agents whose leases were missed; returns those that became unreachable by it. Silent replicas are forgotten. */
  expireLeases(): AgentEntry[] {
    const lost = this.all().filter((one) => one.status !== 'unreachable' && !this.#isFresh(leaseOf(one)))
    for (const entry of lost) this.setStatus(entry.id, 'unreachable')
    for (const entry of this.all()) {
      const gone = entry.replicas?.filter((one) => !this.#isFresh(one.leaseUntil)) ?? []
      if (gone.length === 0) continue
      const others = entry.replicas?.filter((one) => !gone.includes(one)) ?? []
      this.#kept.sign(withReplicas(entry, others), { gone: gone.map(({ id }) => id) })
    }
    return lost
  }

  #isFresh(leaseUntil: number): boolean {
    return leaseUntil > this.#now() - (this.#leasesMissed - 1) * this.leaseMs
  }

  remove(id: string): Promise<void> {
    return this.#kept.serialize(async () => {
      if (this.#index.byId(id) !== undefined) await this.#kept.forget(id)
    })
  }

  /** Writes what only memory knows. */
  flush(): Promise<void> {
    return this.#kept.flush()
  }

  /** As `flush`; then memory knows what the other gateways wrote. */
  sync(thorough = false): Promise<void> {
    return this.#kept.sync(thorough)
  }

  ping(): Promise<void> {
    return this.#store.ping()
  }

  #get(id: string): AgentEntry {
    const entry = this.#index.byId(id)
    if (entry === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
    return entry
  }

  #seen(entry: AgentEntry, replicaId?: string): AgentEntry {
    // Said before its process ended, or by one that is not entered yet where it is now: the supervisor brings it back.
    if (entry.status === 'starting' && replicaId === undefined) return this.#sign(entry)
    const back = entry.status !== 'ready'
    const seen: AgentEntry = {
      ...entry,
      status: 'ready',
      since: back ? timestamp() : entry.since,
      lastSeen: timestamp(),
      leaseUntil: this.#leaseEnd(),
    }
    return this.#kept.sign(seen, replicaId === undefined ? {} : { heard: replicaId })
  }

  /** One that an earlier life of this gateway ran, with all its processes. If this one runs it too, it has a lease's time to come. */
  #gone(entry: AgentEntry): void {
    const gone = (entry.replicas ?? []).map(({ id }) => id)
    const status = this.#reserved.has(entry.slug) ? 'starting' : 'unreachable'
    const since = entry.status === status ? entry.since : timestamp()
    const leaseUntil = status === 'starting' ? this.#leaseEnd() : entry.leaseUntil
    this.#kept.sign({ ...withReplicas(entry, []), status, since, leaseUntil }, { gone })
  }

  #leaseEnd(): number {
    return this.#now() + this.leaseMs
  }

  #sign(entry: AgentEntry): AgentEntry {
    return this.#kept.sign(entry)
  }
}
