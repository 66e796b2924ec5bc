import type { ListedSkill } from '@parley/wire/codecs/parley/skills'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'
import type { Timestamp } from '@parley/wire/model/timestamp'

/**
 * `starting`: the process is being (re)started. `ready`: the lease is valid. `unreachable`: three leases were missed or
 * the process ended; the agent stays registered and becomes ready with its next heartbeat or probe.
 */
export const agentStatuses = ['starting', 'ready', 'unreachable'] as const
export type AgentStatus = (typeof agentStatuses)[number]

/** Load figures that an agent reports with each heartbeat. */
export interface Load {
  queueDepth?: number
  activeTasks?: number
  latencyP50Ms?: number
  latencyP95Ms?: number
  completed?: number
  failed?: number
}

/** Performance measured by the gateway rather than reported by the agent. Older samples have less weight. */
export interface Measurements {
  /** Decayed number of ended tasks and failed requests. */
  samples: number
  /** Tasks sent by this gateway and completed, except those of the agent's own client. Not decayed. */
  completedTasks?: number
  /** Between 0 and 1. */
  successShare: number
  latencyP50Ms?: number
  latencyP95Ms?: number
}

/** One difference between two versions of a card: a skill (`skills.<id>`) or another field. */
export interface CardChange {
  at: Timestamp
  field: string
  /** Undefined if the field did not exist or is too long. */
  before?: JsonValue
  after?: JsonValue
}

/** One of several processes of an agent. They share identity, tasks and queue. */
export interface Replica {
  /** A UUID, new for each run of the process. */
  id: string
  /** Address for the gateway, without a trailing slash. */
  url: string
  load: Load
  lastSeen: Timestamp
  /** Milliseconds since 1970. */
  leaseUntil: number
}

/**
 * A registered agent. The id never changes; the slug changes only when a supervised agent needs it. Slug and DID are
 * unique.
 */
export interface AgentEntry {
  id: string
  slug: string
  name: string
  description: string
  /** Undefined for an agent without a DID. */
  did?: string
  /** Address for the gateway, without a trailing slash. */
  url: string
  /** The card as the agent serves it. */
  card: JsonObject
  skills: ListedSkill[]
  /** OAuth client that registered the agent and may manage it. */
  owner: string
  /** Started by the supervisor, or registered by a client. */
  origin: 'supervised' | 'registered'
  /** Host name of the machine that supervises the agent. */
  host?: string
  /** Whether the agent has proven its key. */
  verified: boolean
  /** DID document from the registration; undefined for an agent without one. */
  document?: JsonObject
  /** Keys of the document in base58, oldest first. The last one was proven. */
  keys?: string[]
  /** Whether the agent may be given work. */
  admitted: boolean
  /** `supervisor`, `open` (for an open registry) or the client id of the operator. */
  admittedBy?: string
  /** Declared by an operator as part of this deployment. It receives callers' tokens like a supervised agent. */
  own?: boolean
  /** Changes of the card since admission, oldest first. Bounded. */
  cardChanges?: CardChange[]
  /** Ejected after repeated failures, or quarantined by an operator (`by`: the operator's client). */
  quarantine?: { since: Timestamp; reason: string; until?: number; by?: string }
  /** Time at which the agent unregistered. Slug and decisions of operators are kept until it registers again. */
  left?: Timestamp
  status: AgentStatus
  /** Time of the last status change. */
  since: Timestamp
  registeredAt: Timestamp
  lastSeen?: Timestamp
  /** Milliseconds since 1970. */
  leaseUntil: number
  /** Whether the agent has ever sent a heartbeat; until then it is probed. */
  sendsHeartbeats: boolean
  /** With replicas: the combined load. */
  load: Load
  /** Processes of an agent with several, oldest first. `url` is the address of the first. Never empty. */
  replicas?: Replica[]
  measurements?: Measurements
}

/** The fields of a registration. */
export type Announcement = Pick<
  AgentEntry,
  'name' | 'description' | 'url' | 'card' | 'skills' | 'owner' | 'origin' | 'verified' | 'admitted'
> &
  Partial<Pick<AgentEntry, 'did' | 'document' | 'keys' | 'admittedBy' | 'host'>> & {
    /** Id of the registering process if the agent has several. */
    replicaId?: string
  }

/** Fields that an entry has before its first registration. */
export type NewEntryFields = Pick<
  AgentEntry,
  'id' | 'slug' | 'registeredAt' | 'sendsHeartbeats' | 'load' | 'left'
>

/** Returns undefined for an agent that has unregistered. */
export function unlessLeft(entry: AgentEntry | undefined): AgentEntry | undefined {
  return entry?.left === undefined ? entry : undefined
}
