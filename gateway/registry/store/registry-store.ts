import type { AgentEntry } from '../entry.ts'

/** An entry with its revision in the store. */
export interface StoredEntry {
  entry: AgentEntry
  /** Changes whenever identity or admission does, but not with lease and load. */
  revision: number
}

/** An update of an entry's lease and load. */
export interface Signs {
  entry: AgentEntry
  /** Ids of the replicas that this gateway has heard from since the last update. */
  heard: readonly string[]
  /** Ids of the removed replicas. */
  gone: readonly string[]
}

/** Thrown if another gateway has changed the entry or added one with the same id, slug or DID. */
export class EntryChanged extends Error {
  override readonly name = 'EntryChanged'
}

/**
 * The persistent state of the registry. A change is durable when its promise resolves, and atomic per entry. Slugs and
 * DIDs are unique.
 */
export interface RegistryStore {
  /** Whether other gateways also use this store. */
  readonly shared: boolean
  all(): Promise<StoredEntry[]>
  /** Adds an entry and resolves with its revision. @throws EntryChanged if a shared store already contains it */
  add(entry: AgentEntry): Promise<number>
  /** Replaces the whole entry. @throws EntryChanged if `revision` is not the newest */
  replace(entry: AgentEntry, revision: number): Promise<number>
  /** @throws EntryChanged like `replace` */
  remove(id: string, revision: number): Promise<void>
  /**
   * Writes leases, load and measurements. If two gateways write, the later lease wins. Identity and admission do not
   * change.
   */
  saveSigns(signs: readonly Signs[]): Promise<void>
  /**
   * Returns the changes since the last call or since `all`. These may include changes made by this gateway.
   * @param thorough whether to compare all entries instead of only the recent changes
   */
  changes(thorough?: boolean): Promise<{ changed: StoredEntry[]; removed: string[] }>
  /** Checks that the storage responds and is writable. */
  ping(): Promise<void>
}
