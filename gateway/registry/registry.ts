import { ParleyError } from '@parley/wire/errors'
import { timestamp } from '@parley/wire/model/timestamp'
import {
  type AdmissionOptions,
  admission,
  admittedFields,
  hasOperatorDecision,
  stillAdmitted,
  trustedClient,
  withoutAdmission,
  withoutEjection,
} from './admission.ts'
import type { AgentDirectory, AgentPolicies } from './agent-policies.ts'
import { cardChanges } from './card-changes.ts'
import type { AgentEntry, AgentStatus, Announcement, Load, Measurements, NewEntryFields } from './entry.ts'
import { unlessLeft } from './entry.ts'
import type { EntryIndex } from './entry-index.ts'
import { EntryRepository } from './entry-repository.ts'
import type { RegistryOptions } from './registry-options.ts'
import {
  hasOtherReplica,
  leaseOf,
  withLoad,
  withoutProcesses,
  withProcess,
  withRenewedLease,
  withReplicas,
} from './replicas.ts'
import { checkRenewed, isFormerIdentity, replacedEntries, sameAgent, slugTakenError } from './same-agent.ts'
import { newEntryFields, numberedSlug, slugOf } from './slug.ts'
import type { RegistryStore } from './store/registry-store.ts'

/** The operator's policy of the entries that a registration replaces. It applies to the new identity. */
type Heir = Pick<AgentEntry, 'policy'>

type GatewayFacts = Partial<Pick<AgentEntry, 'quarantine' | 'exampleProbe'>>

/**
 * The registered agents. Reads are served from memory. Changes to identity and admission are durable when the promise
 * resolves. Leases and load are written later by `flush`, because the next heartbeat replaces a lost one. If several
 * gateways share the store, `sync` reads the changes that the others made.
 */
export class Registry implements AgentDirectory {
  readonly leaseMs: number
  /** The only listeners for changes by this gateway, durable ones, and changes that reduce access. */
  readonly listeners: Pick<EntryRepository, 'onChanged' | 'onWritten' | 'onOutdated'>
  readonly policies: AgentPolicies
  readonly #leasesMissed: number
  readonly #reserved: ReadonlySet<string>
  readonly #now: () => number
  readonly #store: RegistryStore
  readonly #entries: EntryRepository
  readonly #index: EntryIndex

  private constructor(store: RegistryStore, entries: EntryRepository, options: RegistryOptions) {
    this.#store = store
    this.#entries = entries
    this.#index = entries.index
    this.listeners = entries
    this.policies = entries.index.policies
    this.leaseMs = options.leaseMs ?? 30_000
    this.#leasesMissed = options.leasesMissed ?? 3
    this.#reserved = options.reserved ?? new Set()
    this.#now = options.now ?? Date.now
  }

  /**
   * Loads the stored entries. Without a shared store, all leases are renewed because no heartbeats could arrive during the
   * downtime. With a shared store, the other gateways have kept the leases up to date.
   */
  static async open(store: RegistryStore, options: RegistryOptions = {}): Promise<Registry> {
    const registry = new Registry(store, new EntryRepository(store, await store.all()), options)
    for (const entry of registry.all()) {
      if (entry.origin === 'supervised') {
        const ours = entry.host === undefined || options.host === undefined || entry.host === options.host
        if (options.supervises !== false && ours) registry.#markStopped(entry)
        continue
      }
      const admitted = stillAdmitted(entry, options.open !== false)
      if (!store.shared) registry.#entries.update({ ...entry, admitted, leaseUntil: registry.#leaseEnd() })
      else if (admitted !== entry.admitted) await registry.#change(entry.id, () => ({ admitted }))
    }
    return registry
  }

  /** Whether other gateways also write to the store. `sync` reads their changes. */
  get shared(): boolean {
    return this.#store.shared
  }

  /** Adds a listener and calls it with every current entry. Agents that were removed or have unregistered have none. */
  follow(listen: (id: string, entry: AgentEntry | undefined) => void): void {
    const { changed } = this.#index
    this.#index.changed = (id, entry) => {
      changed(id, entry)
      listen(id, unlessLeft(entry))
    }
    for (const entry of this.all()) listen(entry.id, entry)
  }

  get revision(): string {
    return String(this.#index.revision)
  }

  /** Finds an entry by slug, DID or id. */
  find(name: string): AgentEntry | undefined {
    return unlessLeft(this.#index.find(name))
  }

  /** Works like `find`, but synchronizes with the store if the agent or its replica is unknown. */
  async findOrSync(name: string, replicaId?: string): Promise<AgentEntry | undefined> {
    const entry = this.find(name)
    const hasReplica = replicaId === undefined || entry?.replicas?.some(({ id }) => id === replicaId) === true
    if (this.shared && (entry === undefined || !hasReplica)) await this.sync()
    return this.find(name)
  }

  /** Works like `find`, but includes unregistered agents, which keep their slug, DID and address. For operators. */
  findIncludingLeft(name: string): AgentEntry | undefined {
    return this.#index.find(name)
  }

  bySlug(slug: string): AgentEntry | undefined {
    return unlessLeft(this.#index.bySlug(slug))
  }

  /** Returns all agents ordered by slug. */
  all(): readonly AgentEntry[] {
    return this.#index.all().filter((entry) => entry.left === undefined)
  }

  /** Returns unregistered agents that are kept because of an operator's decision, ordered by slug. */
  left(): readonly AgentEntry[] {
    return this.#index.all().filter((entry) => entry.left !== undefined)
  }

  /** Returns the agents that may receive work, whether or not they are available. */
  admitted(): AgentEntry[] {
    return this.all().filter((entry) => entry.admitted)
  }

  /** Returns whether the client is an agent that may introspect its callers' tokens. */
  isTrusted(clientId: string): boolean {
    return clientId.startsWith('did:') && trustedClient(this.find(clientId)) === clientId
  }

  /**
   * Creates an entry or renews the agent's existing one. An agent is the same if its DID is the same or, without a DID, if
   * its slug and address are the same.
   * @throws ParleyError Conflict if the DID, slug or address belongs to another agent, InvalidParams for a name that is a
   * UUID or has no letters or digits
   */
  register(announcement: Announcement): Promise<AgentEntry> {
    const heir = {}
    return this.#entries.serialize(() => this.#register(announcement, heir))
  }

  async #register({ replicaId, renews, ...announcement }: Announcement, heir: Heir): Promise<AgentEntry> {
    if (renews !== undefined) checkRenewed(this.#index.byId(renews), announcement)
    const slug = slugOf(announcement.name)
    if (slug === undefined) {
      throw new ParleyError('InvalidParams', {
        message: 'The name of an agent must contain a letter or digit and must not be a UUID',
      })
    }
    if (announcement.origin === 'supervised') await this.#releaseSlug(announcement, slug, heir)
    for (const stale of replacedEntries(this.#index, announcement)) await this.#supersede(stale, heir)
    const known = sameAgent(this.#index, announcement, slug)
    if (known === undefined && announcement.origin === 'registered' && this.#reserved.has(slug))
      throw slugTakenError(slug)
    const of: NewEntryFields & Partial<AgentEntry> = known ?? newEntryFields(this.#index, announcement, slug)
    const { left: _, relay: _relay, ...before } = withoutEjection(of, announcement)
    const entry: AgentEntry = {
      ...before,
      ...announcement,
      ...(known?.policy === undefined && heir),
      ...admission(known, announcement),
      ...(known !== undefined && { cardChanges: cardChanges(known, announcement) }),
      verified: announcement.verified || known?.verified === true,
      status: 'ready',
      since: known?.status === 'ready' && known.left === undefined ? known.since : timestamp(),
      lastSeen: timestamp(),
      leaseUntil: this.#leaseEnd(),
    }
    const isFresh = (leaseUntil: number) => this.#isFresh(leaseUntil)
    const whole = withProcess(entry, { ...announcement, replicaId }, isFresh)
    return known === undefined ? this.#entries.add(whole) : this.#entries.save(whole)
  }

  /** Frees the slug for a supervised agent. An external agent gets another slug, and a former identity is removed. */
  async #releaseSlug(registrant: Announcement, slug: string, heir: Heir): Promise<void> {
    const holder = this.#index.bySlug(slug)
    const isKnown = registrant.did !== undefined && this.#index.byDid(registrant.did) !== undefined
    if (isKnown || holder === undefined) return
    const isTaken = (one: string) => this.#index.bySlug(one) !== undefined || this.#reserved.has(one)
    if (holder.origin !== 'supervised')
      await this.#entries.amend({ ...holder, slug: numberedSlug(slug, isTaken) })
    else if (isFormerIdentity(holder, registrant)) await this.#supersede(holder, heir)
  }

  /** Removes an entry that the registering agent replaces. */
  #supersede({ id, policy }: AgentEntry, heir: Heir): Promise<void> {
    if (policy !== undefined) heir.policy ??= policy
    return this.#entries.forget(id)
  }

  /**
   * Admits the agent, which may then receive work.
   * @throws ParleyError Conflict if the entry changed since the review, or has no proven key for `own`
   */
  admit(id: string, by: string, as: AdmissionOptions = {}): Promise<AgentEntry> {
    return this.#change(id, (entry) => admittedFields(entry, by, as))
  }

  quarantine(id: string, by: string, reason: string): Promise<AgentEntry> {
    return this.#change(id, () => ({ quarantine: { since: timestamp(), reason, by } }))
  }

  /**
   * Ejects the agent until `until` (milliseconds since 1970) because of repeated failures. Returns false if the agent is
   * unknown or an operator has quarantined it.
   */
  eject(id: string, reason: string, until: number): Promise<boolean> {
    const isOpen = ({ quarantine }: AgentEntry) => quarantine?.by === undefined
    return this.amendIf(id, isOpen, { quarantine: { since: timestamp(), reason, until } })
  }

  /** Ends an ejection after a successful probe. It does not end an operator's quarantine. */
  async reinstate(id: string): Promise<boolean> {
    return this.#entries.serialize(async () => {
      const { quarantine, ...entry } = this.#get(id)
      if (quarantine === undefined || quarantine.by !== undefined) return false
      await this.#entries.amend(entry)
      return true
    })
  }

  /** Stores measurements in memory. `flush` writes them. */
  setMeasurements(id: string, measurements: Measurements): void {
    const entry = this.#index.byId(id)
    if (entry !== undefined) this.#entries.update({ ...entry, measurements })
  }

  release(id: string): Promise<AgentEntry> {
    return this.#entries.serialize(() => {
      const { quarantine: _, ...entry } = this.#get(id)
      return this.#entries.amend(entry)
    })
  }

  /** Unregisters the agent. The entry is kept if an operator has made a decision about it. */
  leave(id: string): Promise<void> {
    return this.#entries.serialize(async () => {
      const entry = this.#get(id)
      if (hasOperatorDecision(entry))
        await this.#entries.save({ ...entry, left: timestamp(), status: 'unreachable' })
      else await this.#entries.forget(id)
    })
  }

  /** Sets or removes the agent's policy. @param check throws if the policy is not the one that the operator has seen */
  setPolicy(
    id: string,
    policy: AgentEntry['policy'],
    check: (entry: AgentEntry) => void,
  ): Promise<AgentEntry> {
    return this.#entries.serialize(async () => {
      const { policy: _, ...entry } = this.#get(id)
      check(this.#get(id))
      if (policy !== undefined) return this.#entries.amend({ ...entry, policy })
      if (entry.left === undefined || hasOperatorDecision(entry)) return this.#entries.amend(entry)
      await this.#entries.forget(id)
      return entry
    })
  }

  /** Changes facts of the gateway. Returns false if the agent is unknown or the change does not apply. */
  amendIf(id: string, applies: (entry: AgentEntry) => boolean, facts: GatewayFacts): Promise<boolean> {
    return this.#entries.serialize(async () => {
      const entry = this.#index.byId(id)
      if (entry === undefined || !applies(entry)) return false
      await this.#entries.amend({ ...entry, ...facts })
      return true
    })
  }

  #change(id: string, fieldsOf: (entry: AgentEntry) => Partial<AgentEntry>) {
    return this.#entries.serialize(() => {
      const entry = this.#get(id)
      return this.#entries.amend({ ...entry, ...fieldsOf(entry) })
    })
  }

  /**
   * Renews the lease. Figures missing from the heartbeat keep their last values. Returns the previous and the new load
   * of this process.
   * @throws ParleyError NotFound for an unknown agent or an unknown replica, which must register again
   */
  heartbeat(id: string, load: Load, replicaId?: string): { entry: AgentEntry; before: Load; now: Load } {
    const { entry, ...loads } = withLoad(this.#get(id), load, replicaId, this.#leaseEnd())
    return { entry: this.#renewLease({ ...entry, sendsHeartbeats: true }, replicaId), ...loads }
  }

  /** Removes one process. If no process is left, the agent is unregistered. */
  async leaveReplica(id: string, replicaId: string): Promise<void> {
    const entry = this.#get(id)
    if (!hasOtherReplica(entry, replicaId)) return this.leave(id)
    this.#dropReplicas(entry, new Set([replicaId]))
    await this.flush()
  }

  /** Handles the end of a process. The agent stays available while another process runs. */
  replicaEnded(id: string, replicaId: string | undefined, status: AgentStatus): void {
    const entry = this.#index.byId(id)
    if (entry === undefined) return
    if (replicaId !== undefined && entry.replicas !== undefined)
      this.#dropReplicas(entry, new Set([replicaId]))
    if (!hasOtherReplica(entry, replicaId)) this.setStatus(id, status)
  }

  /** Renews the lease after a successful probe, as a heartbeat does. */
  probeSucceeded(id: string): void {
    const entry = this.#index.byId(id)
    if (entry !== undefined) this.#renewLease(entry)
  }

  setStatus(id: string, status: AgentStatus): void {
    const entry = this.#index.byId(id)
    if (entry === undefined || entry.status === status) return
    this.#entries.update({ ...entry, status, since: timestamp() })
  }

  /** Marks agents with expired leases as unreachable and returns them. Removes expired replicas. */
  expireLeases(): AgentEntry[] {
    const lost = this.all().filter((one) => one.status !== 'unreachable' && !this.#isFresh(leaseOf(one)))
    for (const entry of lost) this.setStatus(entry.id, 'unreachable')
    for (const entry of this.all()) {
      const expired = (entry.replicas ?? []).filter((one) => !this.#isFresh(one.leaseUntil))
      if (expired.length > 0) this.#dropReplicas(entry, new Set(expired.map(({ id }) => id)))
    }
    return lost
  }

  #dropReplicas(entry: AgentEntry, ids: ReadonlySet<string>): void {
    const others = entry.replicas?.filter(({ id }) => !ids.has(id)) ?? []
    this.#entries.update(withReplicas(entry, others), { gone: [...ids] })
  }

  #isFresh(leaseUntil: number): boolean {
    return leaseUntil > this.#now() - (this.#leasesMissed - 1) * this.leaseMs
  }

  /** Removes the agent. An entry with a policy is kept as unregistered, so that the policy applies if the agent returns. */
  remove(id: string): Promise<void> {
    return this.#entries.serialize(async () => {
      const entry = this.#index.byId(id)
      if (entry?.policy !== undefined) await this.#entries.save(withoutAdmission(entry))
      else if (entry !== undefined) await this.#entries.forget(id)
    })
  }

  /** Writes the unsaved updates. */
  flush(): Promise<void> {
    return this.#entries.flush()
  }

  /** Works like `flush`, and then reads the changes that other gateways made. */
  sync(thorough = false): Promise<void> {
    return this.#entries.sync(thorough)
  }

  ping(): Promise<void> {
    return this.#store.ping()
  }

  #get(id: string): AgentEntry {
    const entry = this.#index.byId(id)
    if (entry === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
    return entry
  }

  #renewLease(entry: AgentEntry, replicaId?: string): AgentEntry {
    // An ended process or an unregistered replica sent this heartbeat. Only the supervisor changes this status.
    if (entry.status === 'starting' && replicaId === undefined) return this.#entries.update(entry)
    const renewed = withRenewedLease(entry, this.#leaseEnd())
    return this.#entries.update(renewed, replicaId === undefined ? {} : { heard: replicaId })
  }

  /** Resets a supervised agent from an earlier run. */
  #markStopped(entry: AgentEntry): void {
    const gone = (entry.replicas ?? []).map(({ id }) => id)
    const restarts = this.#reserved.has(entry.slug)
    this.#entries.update(withoutProcesses(entry, restarts ? this.#leaseEnd() : undefined), { gone })
  }

  #leaseEnd(): number {
    return this.#now() + this.leaseMs
  }
}
