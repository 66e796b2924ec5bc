import type { JsonObject, JsonValue } from './task.ts'
import type { Timestamp } from './timestamp.ts'

/** Figures about its work that an agent reports with each heartbeat. */
export interface LoadReport {
  queueDepth?: number | undefined
  activeTasks?: number | undefined
  latencyP50Ms?: number | undefined
  latencyP95Ms?: number | undefined
  completed?: number | undefined
  failed?: number | undefined
}

/** How a task ended, or was rated by its owner. */
export interface TaskOutcome {
  taskId: string
  state: 'completed' | 'failed'
  /** 1 to 5. */
  rating?: number | undefined
}

export interface Heartbeat extends LoadReport {
  /** The process of the agent, where it has several. */
  replicaId?: string | undefined
  outcomes?: TaskOutcome[] | undefined
}

/** An agent in the list of a registry. */
export interface EntrySummary {
  slug: string
  id: string
  name: string
  description: string
  did: string | null
  /** The address of the agent at the gateway. */
  url: string
  status: string
  verified: boolean
  admitted: boolean
  origin: string
  external: boolean
  quarantined: boolean
  /** When the status began. */
  since: Timestamp
  lastSeen: Timestamp | null
  left?: Timestamp | undefined
  skills: readonly { id: string; name: string; tags: readonly string[] }[]
}

/** An agent in full. */
export interface EntryDetail {
  summary: EntrySummary
  registeredAt: Timestamp
  /** Changes whenever the agent's identity, card or skills change. */
  revision: string
  keys: readonly string[]
  /** The `resource` of tokens for this agent. */
  tokenResource: string
  cardChanges: readonly { at: Timestamp; field: string; before: JsonValue; after: JsonValue }[]
  quarantine: { since: Timestamp; reason: string; by: string; until: Timestamp | null } | null
  leaseUntil: Timestamp
  load: LoadReport
  replicas: readonly { id: string; lastSeen: Timestamp; leaseUntil: Timestamp; load: LoadReport }[]
  measurements:
    | {
        samples: number
        completedTasks?: number | undefined
        successShare: number
        latencyP50Ms?: number | undefined
        latencyP95Ms?: number | undefined
      }
    | undefined
  /** As the agent listed them. */
  skills: readonly JsonObject[]
  /** As the agent serves it. */
  card: JsonObject
}
