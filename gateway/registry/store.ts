import type { AgentEntry } from './entry.ts'

/** An entry as it is in the store. */
export interface StoredEntry {
  entry: AgentEntry
  /** Another one after each change of who it is or whether it may work. */
  revision: number
}

/** Signs of life of one entry. */
export interface Signs {
  entry: AgentEntry
  /** Of its replicas those that were heard of here. */
  heard: readonly string[]
  /** Ids of replicas that are no more. */
  gone: readonly string[]
}

/** Another gateway changed the entry, or has one with its id, slug or DID. */
export class EntryChanged extends Error {
  override readonly name = 'EntryChanged'
}

/**
 * Where the registry outlives its process. A resolved promise means that the change is durable; an entry changes
 * atomically. Slug and DID are unique among the entries.
 */
export interface RegistryStore {
  /** Other gateways write here too. */
  readonly shared: boolean
  all(): Promise<StoredEntry[]>
  /** A new one; resolves with its revision. @throws EntryChanged where it is shared, and there is one */
  add(entry: AgentEntry): Promise<number>
  /** Who it is, whether it may work, and its signs. @throws EntryChanged when that revision is no longer the newest */
  replace(entry: AgentEntry, revision: number): Promise<number>
  /** @throws EntryChanged as `replace` */
  remove(id: string, revision: number): Promise<void>
  /**
   * Leases, load and the like. Of two gateways the later lease counts; who it is and whether it may work stays as it is
   * there.
   */
  saveSigns(signs: readonly Signs[]): Promise<void>
  /**
   * What changed since this was asked last, `all` at first; own changes may be in it.
   * @param thorough compares everything, rather than what was changed lately
   */
  changes(thorough?: boolean): Promise<{ changed: StoredEntry[]; removed: string[] }>
  /** Asks the storage itself; rejects when it does not answer or cannot be written. */
  ping(): Promise<void>
}
