import { randomUUID } from 'node:crypto'
import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import { timestamp } from '../../shared/protocol/timestamp.ts'
import { admission, isDecided, stillAdmitted } from './admission.ts'
import { cardChanges } from './card-changes.ts'
import type { AgentEntry, AgentStatus, Load, Measurements } from './entry.ts'
import { EntryIndex } from './entry-index.ts'
import { makesWay, sameAgent, slugTaken } from './same-agent.ts'
import { isUuid, slugOf } from './slug.ts'
import type { RegistryStore } from './store.ts'

/** What is known of an agent when it comes to the registry. */
export type Announcement = Pick<
  AgentEntry,
  'name' | 'description' | 'url' | 'card' | 'skills' | 'owner' | 'origin' | 'verified' | 'admitted'
> &
  Partial<Pick<AgentEntry, 'did' | 'document' | 'keys' | 'admittedBy'>>

export interface RegistryOptions {
  /** How long a heartbeat holds. Default 30 s. */
  leaseMs?: number
  /** Leases that pass without a sign before an agent counts as unreachable. Default 3. */
  leasesMissed?: number
  /** Whether agents that were admitted because the registry was open stay so. Default yes. */
  open?: boolean
  /** Slugs of the agents that the gateway runs by itself: no stranger gets them. */
  reserved?: ReadonlySet<string>
  /** The clock, in milliseconds since 1970. */
  now?: () => number
}

type Blank = Pick<AgentEntry, 'id' | 'slug' | 'registeredAt' | 'sendsHeartbeats' | 'load' | 'left'>

/**
 * The agents that the gateway knows. Reads are from memory; who an agent is and whether it may work is durable before the
 * promise resolves; leases and load are written with `flush`, for a heartbeat lost in a crash is made good by the next.
 */
export class Registry {
  readonly leaseMs: number
  readonly #leasesMissed: number
  readonly #reserved: ReadonlySet<string>
  readonly #now: () => number
  readonly #store: RegistryStore
  readonly #index: EntryIndex
  readonly #unsaved = new Set<string>()
  /** Changes one after another: two that want the same slug must not both find it free. */
  #turn: Promise<unknown> = Promise.resolve()

  private constructor(store: RegistryStore, entries: AgentEntry[], options: RegistryOptions) {
    this.#store = store
    this.#index = new EntryIndex(entries)
    this.leaseMs = options.leaseMs ?? 30_000
    this.#leasesMissed = options.leasesMissed ?? 3
    this.#reserved = options.reserved ?? new Set()
    this.#now = options.now ?? Date.now
  }

  /** Reads the entries of an earlier run. Their leases begin anew: while the gateway was away nobody could renew one. */
  static async open(store: RegistryStore, options: RegistryOptions = {}): Promise<Registry> {
    const registry = new Registry(store, await store.all(), options)
    for (const entry of registry.all()) {
      if (entry.origin === 'supervised') {
        registry.setStatus(entry.id, 'unreachable')
        continue
      }
      const admitted = stillAdmitted(entry, options.open !== false)
      registry.#replace({ ...entry, admitted, leaseUntil: registry.#leaseEnd() })
    }
    return registry
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

  /** As `find`, those that left too: they hold their slug, DID and address. For operators. */
  findEvenLeft(name: string): AgentEntry | undefined {
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

  /** Whether this client is an agent that proved its key, was admitted and is not set aside. */
  isTrusted(clientId: string): boolean {
    const entry = clientId.startsWith('did:') ? this.find(clientId) : undefined
    return entry?.owner === clientId && entry.verified && entry.admitted && entry.quarantine === undefined
  }

  /**
   * Makes an entry, or renews the one of the same agent (the same DID; without DID the same slug and address).
   * @throws ParleyError Conflict when DID, slug or address are another agent's, InvalidParams for a name without letters
   * or digits, or one that is a UUID.
   */
  register(announcement: Announcement): Promise<AgentEntry> {
    return this.#inTurn(() => this.#register(announcement))
  }

  async #register(announcement: Announcement): Promise<AgentEntry> {
    const slug = slugOf(announcement.name)
    if (slug === undefined) {
      throw new ParleyError('InvalidParams', {
        message: 'The name of an agent needs a letter or a digit, and is no UUID',
      })
    }
    if (announcement.origin === 'supervised') await this.#makeWay(announcement, slug)
    const { url, did = '' } = announcement
    for (const stale of [this.#index.byUrl(url), this.#index.byDid(did)])
      if (stale !== undefined && makesWay(stale, announcement)) await this.#forget(stale.id)
    const known = sameAgent(this.#index, announcement, slug)
    if (known === undefined && announcement.origin === 'registered' && this.#reserved.has(slug))
      throw slugTaken(slug)
    const { left: _, ...before } = known ?? this.#blank(announcement, slug)
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
    return known === undefined ? this.#add(entry) : this.#save(entry)
  }

  /** A stranger that came first under the name of an agent of the house goes on under another. */
  async #makeWay({ did }: Announcement, slug: string): Promise<void> {
    const stranger = this.#index.bySlug(slug)
    const isKnown = did !== undefined && this.#index.byDid(did) !== undefined
    if (isKnown || stranger === undefined || stranger.origin === 'supervised') return
    await this.#save({ ...stranger, slug: this.#freeSlug(slug) })
  }

  #freeSlug(taken: string): string {
    for (let number = 2; ; number++) {
      const slug = `${taken.slice(0, 56)}-${number}`
      if (this.#index.bySlug(slug) === undefined && !this.#reserved.has(slug)) return slug
    }
  }

  /** From now on it gets work: whoever says so has seen its card as it is now. */
  admit(id: string, by: string): Promise<AgentEntry> {
    return this.#change(id, { admitted: true, admittedBy: by, cardChanges: [] })
  }

  quarantine(id: string, by: string, reason: string): Promise<AgentEntry> {
    return this.#change(id, { quarantine: { since: timestamp(), reason, by } })
  }

  /**
   * Sets it aside until `until` (milliseconds since 1970), because it failed again and again. What an operator decided
   * stays as it is. False when there is nothing to set aside.
   */
  async setAside(id: string, reason: string, until: number): Promise<boolean> {
    return this.#inTurn(async () => {
      const entry = this.#index.byId(id)
      if (entry === undefined || entry.quarantine?.by !== undefined) return false
      await this.#save({ ...entry, quarantine: { since: timestamp(), reason, until } })
      return true
    })
  }

  /** It answered its probe after a time aside that nobody but the gateway had decided. */
  async takeBack(id: string): Promise<boolean> {
    return this.#inTurn(async () => {
      const { quarantine, ...entry } = this.#get(id)
      if (quarantine === undefined || quarantine.by !== undefined) return false
      await this.#save(entry)
      return true
    })
  }

  /** What was seen of it; written with `flush`. */
  measured(id: string, measurements: Measurements): void {
    const entry = this.#index.byId(id)
    if (entry !== undefined) this.#replace({ ...entry, measurements })
  }

  release(id: string): Promise<AgentEntry> {
    return this.#inTurn(() => {
      const { quarantine: _, ...entry } = this.#get(id)
      return this.#save(entry)
    })
  }

  /** It says goodbye by itself. What an operator decided about it holds when it comes again. */
  leave(id: string): Promise<void> {
    return this.#inTurn(async () => {
      const entry = this.#get(id)
      if (isDecided(entry)) await this.#save({ ...entry, left: timestamp(), status: 'unreachable' })
      else await this.#forget(id)
    })
  }

  #change(id: string, fields: Partial<AgentEntry>): Promise<AgentEntry> {
    return this.#inTurn(() => this.#save({ ...this.#get(id), ...fields }))
  }

  /** Durable before the promise resolves. */
  async #save(entry: AgentEntry): Promise<AgentEntry> {
    await this.#store.save([entry])
    this.#index.set(entry)
    this.#unsaved.delete(entry.id)
    return entry
  }

  async #add(entry: AgentEntry): Promise<AgentEntry> {
    await this.#store.add(entry)
    this.#index.set(entry)
    return entry
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(step)
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  #blank(announcement: Announcement, slug: string): Blank {
    const ownId = idOfKey(announcement)
    const isFree = ownId !== undefined && this.#index.byId(ownId) === undefined
    const id = isFree ? ownId : randomUUID()
    return { id, slug, registeredAt: timestamp(), sendsHeartbeats: false, load: {} }
  }

  /** Renews the lease. Figures that the heartbeat does not name keep their last value. */
  heartbeat(id: string, load: Load): AgentEntry {
    const entry = this.#get(id)
    return this.#seen({ ...entry, sendsHeartbeats: true, load: { ...entry.load, ...load } })
  }

  /** It answered a probe: as good as a heartbeat. */
  answered(id: string): void {
    const entry = this.#index.byId(id)
    if (entry !== undefined) this.#seen(entry)
  }

  setStatus(id: string, status: AgentStatus): void {
    const entry = this.#index.byId(id)
    if (entry === undefined || entry.status === status) return
    this.#replace({ ...entry, status, since: timestamp() })
  }

  /** Marks the agents whose leases were missed; returns those that became unreachable by it. */
  expireLeases(): AgentEntry[] {
    const oldest = this.#now() - (this.#leasesMissed - 1) * this.leaseMs
    const lost = this.all().filter((entry) => entry.status === 'ready' && entry.leaseUntil <= oldest)
    for (const entry of lost) this.setStatus(entry.id, 'unreachable')
    return lost
  }

  remove(id: string): Promise<void> {
    return this.#inTurn(() => this.#forget(id))
  }

  async #forget(id: string): Promise<void> {
    await this.#store.remove(id)
    this.#index.delete(id)
    this.#unsaved.delete(id)
  }

  /** Writes what only memory knows. */
  flush(): Promise<void> {
    return this.#inTurn(() => this.#write())
  }

  async #write(): Promise<void> {
    const ids = [...this.#unsaved]
    this.#unsaved.clear()
    const entries = ids.map((id) => this.#index.byId(id)).filter((entry) => entry !== undefined)
    if (entries.length === 0) return
    try {
      await this.#store.save(entries)
    } catch (error) {
      for (const id of ids) this.#unsaved.add(id)
      throw error
    }
  }

  ping(): Promise<void> {
    return this.#store.ping()
  }

  #get(id: string): AgentEntry {
    const entry = this.#index.byId(id)
    if (entry === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
    return entry
  }

  #seen(entry: AgentEntry): AgentEntry {
    const back = entry.status !== 'ready'
    return this.#replace({
      ...entry,
      status: 'ready',
      since: back ? timestamp() : entry.since,
      lastSeen: timestamp(),
      leaseUntil: this.#leaseEnd(),
    })
  }

  #leaseEnd(): number {
    return this.#now() + this.leaseMs
  }

  #replace(entry: AgentEntry): AgentEntry {
    this.#index.set(entry)
    this.#unsaved.add(entry.id)
    return entry
  }
}

/** The end of a DID of ours is made of its first key, which its document has shown. Of another method it is any text. */
function idOfKey({ did, keys }: Announcement): string | undefined {
  const id = did?.startsWith('did:parley:') && keys !== undefined ? did.split(':').at(-1) : undefined
  return id !== undefined && isUuid(id) ? id : undefined
}

function present(entry: AgentEntry | undefined): AgentEntry | undefined {
  return entry?.left === undefined ? entry : undefined
}
