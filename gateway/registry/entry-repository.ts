import { setTimeout as pause } from 'node:timers/promises'
import { unavailable } from '@parley/kit/database/errors'
import type { AgentEntry } from './entry.ts'
import { type AccessChange, EntryIndex } from './entry-index.ts'
import { EntryChanged, type RegistryStore, type Signs, type StoredEntry } from './store/registry-store.ts'

/** Number of attempts, which suffices even if many gateways change the same entry concurrently. */
const attemptsMax = 20

/** Changes to an entry's replicas that are not in the store yet. */
interface UnsavedReplicas {
  heard: Set<string>
  gone: Set<string>
}

/**
 * Keeps the registry entries in memory and in the store. Durable changes are computed from memory and written with
 * optimistic concurrency control. If another gateway has changed the entry, its version is read and the change is
 * computed again. Lease and load updates are written later and may be lost.
 */
export class EntryRepository {
  readonly index: EntryIndex
  readonly #store: RegistryStore
  readonly #revisions = new Map<string, number>()
  readonly #unsaved = new Map<string, UnsavedReplicas>()
  /** Serializes changes so that two registrations cannot take the same slug. */
  #queue: Promise<unknown> = Promise.resolve()
  /** Outcome of the latest calls of the listener of `onOutdated`. */
  #outdated: Promise<unknown> = Promise.resolve()
  /** Called after each durable change. */
  onWritten: () => void = () => {}
  /** Called with each entry that this gateway has changed, added or removed. Must not block or throw. */
  onChanged: (before: AgentEntry | undefined, after: AgentEntry | undefined) => void = () => {}

  constructor(store: RegistryStore, stored: readonly StoredEntry[]) {
    this.#store = store
    this.index = new EntryIndex(stored.map(({ entry }) => entry))
    for (const { entry, revision } of stored) this.#revisions.set(entry.id, revision)
  }

  /** @param listen called when introspection responses may have become outdated; changes wait for it */
  onOutdated(listen: (change: AccessChange) => Promise<void>): void {
    this.index.outdated = (change) => {
      this.#outdated = Promise.allSettled([this.#outdated, listen(change)])
    }
  }

  /** Runs one change at a time and retries it after a conflict with another gateway. */
  async serialize<T>(step: () => Promise<T>): Promise<T> {
    const changing = this.#queue.then(() => this.#retry(step))
    this.#queue = changing.catch(() => undefined)
    const result = await changing
    await this.#outdated
    return result
  }

  async #retry<T>(step: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await step()
      } catch (error) {
        if (!(error instanceof EntryChanged)) throw error
        if (attempt === attemptsMax) throw unavailable('Too many concurrent changes to the registry', error)
        // A random delay prevents the same gateways from conflicting again.
        if (attempt > 1) await pause(Math.min(2 ** attempt, 100) * Math.random())
        await this.#merge(attempt > 1)
      }
    }
  }

  /** Writes the entry, which is durable when the promise resolves. */
  async save(entry: AgentEntry): Promise<AgentEntry> {
    this.#revisions.set(entry.id, await this.#store.replace(entry, this.#revisions.get(entry.id) ?? 0))
    this.#set(entry)
    this.#unsaved.delete(entry.id)
    this.onWritten()
    return entry
  }

  /** Works like `save`, but keeps lease and load updates that arrive during the write. */
  async amend(entry: AgentEntry): Promise<AgentEntry> {
    const before = this.index.byId(entry.id)
    this.#revisions.set(entry.id, await this.#store.replace(entry, this.#revisions.get(entry.id) ?? 0))
    const now = this.index.byId(entry.id)
    const isUnchanged = now === undefined || now === before
    const whole = isUnchanged ? entry : withLivenessOf(entry, now)
    this.#set(whole)
    if (isUnchanged) this.#unsaved.delete(entry.id)
    this.onWritten()
    return whole
  }

  async add(entry: AgentEntry): Promise<AgentEntry> {
    this.#revisions.set(entry.id, await this.#store.add(entry))
    this.#set(entry)
    this.onWritten()
    return entry
  }

  async forget(id: string): Promise<void> {
    await this.#store.remove(id, this.#revisions.get(id) ?? 0)
    const before = this.index.byId(id)
    this.#evict(id)
    this.onChanged(before, undefined)
    this.onWritten()
  }

  /** Updates the entry in memory. `flush` writes the update. */
  update(
    entry: AgentEntry,
    { heard, gone = [] }: { heard?: string; gone?: readonly string[] } = {},
  ): AgentEntry {
    this.#set(entry)
    const unsaved = this.#unsaved.get(entry.id) ?? { heard: new Set(), gone: new Set() }
    if (heard !== undefined) unsaved.heard.add(heard)
    for (const id of gone) unsaved.gone.add(id)
    this.#unsaved.set(entry.id, unsaved)
    return entry
  }

  /** Writes the unsaved updates. */
  flush(): Promise<void> {
    return this.serialize(() => this.#flush())
  }

  /** Writes the unsaved updates and reads the changes of other gateways. */
  sync(thorough: boolean): Promise<void> {
    return this.serialize(async () => {
      await this.#flush()
      await this.#merge(thorough)
    })
  }

  async #flush(): Promise<void> {
    const unsaved = new Map(this.#unsaved)
    this.#unsaved.clear()
    const signs = [...unsaved].flatMap(([id, { heard, gone }]): Signs[] => {
      const entry = this.index.byId(id)
      return entry === undefined ? [] : [{ entry, heard: [...heard], gone: [...gone] }]
    })
    if (signs.length === 0) return
    try {
      await this.#store.saveSigns(signs)
    } catch (error) {
      for (const [id, { heard, gone }] of unsaved) {
        const now = this.#unsaved.get(id) ?? { heard: new Set(), gone: new Set() }
        this.#unsaved.set(id, {
          heard: new Set([...heard, ...now.heard]),
          gone: new Set([...gone, ...now.gone]),
        })
      }
      throw error
    }
  }

  async #merge(thorough: boolean): Promise<void> {
    const { changed, removed } = await this.#store.changes(thorough)
    for (const id of removed) this.#evict(id)
    for (const stored of changed) {
      const local = this.index.byId(stored.entry.id)
      const sameFacts = local !== undefined && this.#revisions.get(local.id) === stored.revision
      this.#revisions.set(stored.entry.id, stored.revision)
      // This gateway's unsaved updates are newer than the stored ones.
      const isUnsaved = local !== undefined && this.#unsaved.has(local.id)
      if (isUnsaved && sameFacts) continue
      const entry = local === undefined ? stored.entry : mergedEntry(local, stored.entry, sameFacts)
      this.index.set(
        isUnsaved && local.leaseUntil > entry.leaseUntil ? { ...entry, ...livenessOf(local) } : entry,
      )
    }
  }

  #set(entry: AgentEntry): void {
    const before = this.index.byId(entry.id)
    this.index.set(entry)
    this.onChanged(before, entry)
  }

  #evict(id: string): void {
    this.index.delete(id)
    this.#revisions.delete(id)
    this.#unsaved.delete(id)
  }
}

/** Returns the fields that a lease renewal changes. */
function livenessOf({ status, since, lastSeen, leaseUntil }: AgentEntry) {
  return { status, since, leaseUntil, ...(lastSeen !== undefined && { lastSeen }) }
}

function withLivenessOf(entry: AgentEntry, now: AgentEntry): AgentEntry {
  const { sendsHeartbeats, load, measurements, replicas, url } = now
  const { replicas: _, ...facts } = entry
  return {
    ...facts,
    ...livenessOf(now),
    sendsHeartbeats,
    load,
    url,
    ...(measurements !== undefined && { measurements }),
    ...(replicas !== undefined && { replicas }),
  }
}

/** Merges a stored entry. Unchanged cards and skills keep their object identity, because caches depend on it. */
function mergedEntry(local: AgentEntry, stored: AgentEntry, sameFacts: boolean): AgentEntry {
  // Each gateway continues its own measurements.
  const measured = local.measurements ?? stored.measurements
  const { measurements: _, ...rest } = stored
  const entry: AgentEntry = { ...rest, ...(measured !== undefined && { measurements: measured }) }
  if (!sameFacts) return entry
  const { card, skills, policy } = local
  return { ...entry, card, skills, ...(policy !== undefined && { policy }) }
}
