import type { ListedSkill } from '@parley/wire/codecs/parley/skills'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'
import type { Timestamp } from '@parley/wire/model/timestamp'

/**
 * `starting`: its process is being started (again). `ready`: its lease holds. `unreachable`: three leases were missed or
 * its process is gone; it stays in the registry and comes back with its next heartbeat or probe.
 */
export const agentStatuses = ['starting', 'ready', 'unreachable'] as const
export type AgentStatus = (typeof agentStatuses)[number]

/** What an agent says of itself with each heartbeat. */
export interface Load {
  queueDepth?: number
  activeTasks?: number
  latencyP50Ms?: number
  latencyP95Ms?: number
  completed?: number
  failed?: number
}

/** What was seen of an agent's work, rather than what it says; older work counts less. */
export interface Measurements {
  /** Decayed count of ended tasks and of requests that it failed. */
  samples: number
  /** Tasks that this gateway gave to it and saw completed, other than those of its own client; does not decay. */
  completedTasks?: number
  /** 0..1 */
  successShare: number
  latencyP50Ms?: number
  latencyP95Ms?: number
}

/** One difference between two cards of an agent: a skill (`skills.<id>`) or another field. */
export interface CardChange {
  at: Timestamp
  field: string
  /** Absent: it was not there, or is too long to keep. */
  before?: JsonValue
  after?: JsonValue
}

/** One of several processes of an agent that share its identity, tasks and line. */
export interface Replica {
  /** A UUID, another one in each life of the process. */
  id: string
  /** Where the gateway reaches it, without a slash at the end. */
  url: string
  load: Load
  lastSeen: Timestamp
  /** Milliseconds since 1970. */
  leaseUntil: number
}

/** One agent. Its id never changes, its slug only where one of the house needs it; slug and DID are unique. */
export interface AgentEntry {
  id: string
  slug: string
  name: string
  description: string
  /** Absent: an agent that is not ours and has none. */
  did?: string
  /** Where the gateway reaches it, without a slash at the end. */
  url: string
  /** As the agent serves it. */
  card: JsonObject
  skills: ListedSkill[]
  /** The OAuth client that speaks for it. */
  owner: string
  /** Started by the supervisor, or registered from outside. */
  origin: 'supervised' | 'registered'
  /** The machine whose supervisor runs it. */
  host?: string
  /** Its key was proven. */
  verified: boolean
  /** Its DID document as it came with the registration; absent where it has none. */
  document?: JsonObject
  /** Keys of the document, base58, oldest first; the last one is that of the proof. */
  keys?: string[]
  /** It may be given work. */
  admitted: boolean
  /** `supervisor`, `open` (the registry was), or the client of the operator who said so. */
  admittedBy?: string
  /** An operator declared at admission that this deployment runs it: callers' tokens are forwarded as to supervised agents. */
  own?: boolean
  /** How the card has changed since it was admitted, oldest first; bounded. */
  cardChanges?: CardChange[]
  /** Set aside after repeated failures, or by the operator (`by`: the operator's client). */
  quarantine?: { since: Timestamp; reason: string; until?: number; by?: string }
  /** It said goodbye. Who was admitted by an operator keeps slug and admission until it comes again. */
  left?: Timestamp
  status: AgentStatus
  /** Since when it has this status. */
  since: Timestamp
  registeredAt: Timestamp
  lastSeen?: Timestamp
  /** Milliseconds since 1970. */
  leaseUntil: number
  /** It has sent a heartbeat at least once; until then it is probed. */
  sendsHeartbeats: boolean
  /** Of one with replicas: of all together. */
  load: Load
  /** Its processes, where it has several, the oldest first; `url` is that of the first. Never empty. */
  replicas?: Replica[]
  measurements?: Measurements
}

/** What is known of an agent when it comes to the registry. */
export type Announcement = Pick<
  AgentEntry,
  'name' | 'description' | 'url' | 'card' | 'skills' | 'owner' | 'origin' | 'verified' | 'admitted'
> &
  Partial<Pick<AgentEntry, 'did' | 'document' | 'keys' | 'admittedBy' | 'host'>> & {
    /** The process that comes, where the agent has several that share its identity, tasks and line. */
    replicaId?: string
  }

/** What an entry has before its agent announces itself. */
export type Blank = Pick<AgentEntry, 'id' | 'slug' | 'registeredAt' | 'sendsHeartbeats' | 'load' | 'left'>

/** Undefined for an agent that has left. */
export function present(entry: AgentEntry | undefined): AgentEntry | undefined {
  return entry?.left === undefined ? entry : undefined
}
