import type { AgentEntry } from './entry.ts'

/**
 * Where the registry outlives its process. A resolved promise means that the change is durable; an entry changes
 * atomically. Slug and DID are unique among the entries.
 */
export interface RegistryStore {
  all(): Promise<AgentEntry[]>
  save(entries: readonly AgentEntry[]): Promise<void>
  remove(id: string): Promise<void>
  /** Asks the storage itself; rejects when it does not answer or cannot be written. */
  ping(): Promise<void>
}
