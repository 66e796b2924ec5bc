import type { JsonObject, JsonValue } from './task.ts'
import type { Timestamp } from './timestamp.ts'

/** Figures about an agent's work, which it reports with each heartbeat. */
export interface LoadReport {
  queueDepth?: number | undefined
  activeTasks?: number | undefined
  latencyP50Ms?: number | undefined
  latencyP95Ms?: number | undefined
  completed?: number | undefined
  failed?: number | undefined
}

/** How a task ended, or how its owner rated it. */
export interface TaskOutcome {
  taskId: string
  state: 'completed' | 'failed'
  /** From 1 to 5. */
  rating?: number | undefined
}

export interface Heartbeat extends LoadReport {
  /** Identifies the process if the agent has several. */
  replicaId?: string | undefined
  outcomes?: TaskOutcome[] | undefined
}

/** An agent in a registry's list. */
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
  /** When the current status began. */
  since: Timestamp
  lastSeen: Timestamp | null
  left?: Timestamp | undefined
  skills: readonly { id: string; name: string; tags: readonly string[] }[]
  /** How the relay calls a foreign A2A agent or an MCP server. Undefined for other agents. */
  relay?: RelaySummary | undefined
}

export interface RelaySummary {
  /** The name of the A2A dialect in which the agent is called, or `mcp`. */
  dialect: string
  /** The value of `A2A-Version`, if the dialect has it, or the revision of MCP. */
  version: string | undefined
  streaming: boolean
  /** The supported schemes of the card, of which the first is used. */
  security: readonly string[]
  /** Whether the signature in the card proves who published it. */
  cardSignature: { verified: true; kid: string } | { verified: false; reason: string }
}

/** All details of an agent. */
export interface EntryDetail {
  summary: EntrySummary
  registeredAt: Timestamp
  /** Changes whenever the agent's identity, card or skills change. */
  revision: string
  /** The revision that an operator admitted, and when. */
  admittedRevision: string | null
  admittedAt: Timestamp | null
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
  /** The newest probe of the agent with its own examples. */
  exampleProbe?:
    | {
        revision: string
        at: Timestamp
        completed: number
        failed: number
        inputRequired: number
        authRequired: number
        paymentRequired: number
        timedOut: number
      }
    | undefined
  /** The skills as the agent listed them. */
  skills: readonly JsonObject[]
  /** The card as the agent serves it. */
  card: JsonObject
}
