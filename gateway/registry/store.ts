import type { AgentEntry } from './entry.ts'

/**
 * Where the registry outlives its process. A resolved promise means that the change is durable; an entry changes
 * atomically. Slug and DID are unique among the entries.
 */
export interface RegistryStore {
  all(): Promise<AgentEntry[]>
  /** A new one; rejects when there is one with its id, slug or DID. */
  add(entry: AgentEntry): Promise<void>
  save(entries: readonly AgentEntry[]): Promise<void>
  remove(id: string): Promise<void>
  /** Asks the storage itself; rejects when it does not answer or cannot be written. */
  ping(): Promise<void>
}
