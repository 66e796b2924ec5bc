import type { AgentEntry } from '../entry.ts'

/** A stored entry. */
export interface StoredEntry {
  entry: AgentEntry
  /** Changes with identity and admission, not with lease and load. */
  revision: number
}

/** Lease and load update of an entry. */
export interface Signs {
  entry: AgentEntry
  /** Ids of replicas seen by this gateway since the last update. */
  heard: readonly string[]
  /** Ids of removed replicas. */
  gone: readonly string[]
}

/** Another gateway changed the entry, or added one with the same id, slug or DID. */
export class EntryChanged extends Error {
  override readonly name = 'EntryChanged'
}

/**
 * Persistence of the registry. Changes are durable when the promise resolves and atomic per entry. Slug and DID are
 * unique.
 */
export interface RegistryStore {
  /** Whether other gateways use the same store. */
  readonly shared: boolean
  all(): Promise<StoredEntry[]>
  /** Adds an entry and resolves with its revision. @throws EntryChanged if a shared store already contains it */
  add(entry: AgentEntry): Promise<number>
  /** Replaces the whole entry. @throws EntryChanged if `revision` is not the newest */
  replace(entry: AgentEntry, revision: number): Promise<number>
  /** @throws EntryChanged like `replace` */
  remove(id: string, revision: number): Promise<void>
  /**
   * Writes leases, load and measurements. If two gateways write, the later lease wins; identity and admission are not
   * changed.
   */
  saveSigns(signs: readonly Signs[]): Promise<void>
  /**
   * Returns the changes since the last call, or since `all`. May include own changes.
   * @param thorough compares all entries instead of the recent changes
   */
  changes(thorough?: boolean): Promise<{ changed: StoredEntry[]; removed: string[] }>
  /** Checks that the storage responds and is writable. */
  ping(): Promise<void>
}
