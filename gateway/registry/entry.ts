import type { ForeignInterface } from '@parley/wire/codecs/foreign-card'
import type { ListedSkill } from '@parley/wire/codecs/parley/skills'
import type { StoredPolicy } from '@parley/wire/model/policy'
import type { JsonObject, JsonValue } from '@parley/wire/model/task'
import type { Timestamp } from '@parley/wire/model/timestamp'

/**
 * An agent is `starting` while its process is being (re)started and `ready` while its lease is valid. It is
 * `unreachable` after three missed leases or the end of its process. It then stays registered and becomes ready with its
 * next heartbeat or successful probe.
 */
export const agentStatuses = ['starting', 'ready', 'unreachable'] as const
export type AgentStatus = (typeof agentStatuses)[number]

/** The load figures that an agent reports with each heartbeat. */
export interface Load {
  queueDepth?: number
  activeTasks?: number
  latencyP50Ms?: number
  latencyP95Ms?: number
  completed?: number
  failed?: number
}

/** Performance that the gateway measures rather than the agent reports. Older samples have less weight. */
export interface Measurements {
  /** Number of ended tasks and failed requests, decayed over time. */
  samples: number
  /** Number of completed tasks that this gateway sent, except those of the agent's own client. Not decayed. */
  completedTasks?: number
  /** A fraction between 0 and 1. */
  successShare: number
  latencyP50Ms?: number
  latencyP95Ms?: number
}

/**
 * The results of sending an agent its own examples (PROBE_EXAMPLES). The answers are not kept. All numbers are 0 while
 * the probe runs, and if the gateway may not call the agent.
 */
export interface ExampleProbe {
  /** The revision of the entry that was probed. */
  revision: string
  /** When the probe began. */
  at: Timestamp
  /** Number of probes of this revision, including this one. */
  attempts: number
  completed: number
  failed: number
  inputRequired: number
  authRequired: number
  paymentRequired: number
  timedOut: number
}

/** One difference between two versions of a card, in a skill (`skills.<id>`) or another field. */
export interface CardChange {
  at: Timestamp
  field: string
  /** Undefined if the field did not exist or was too long. */
  before?: JsonValue
  after?: JsonValue
}

/** One of several processes of an agent, which share its identity, tasks and queue. */
export interface Replica {
  /** A UUID that is new for each run of the process. */
  id: string
  /** The address that the gateway uses, without a trailing slash. */
  url: string
  load: Load
  lastSeen: Timestamp
  /** Milliseconds since 1970. */
  leaseUntil: number
}

/**
 * A registered agent. Its id never changes, and its slug changes only if a supervised agent needs that slug. Slugs and
 * DIDs are unique.
 */
export interface AgentEntry {
  id: string
  slug: string
  name: string
  description: string
  /** Undefined if the agent has no DID. */
  did?: string
  /** The address that the gateway uses, without a trailing slash. */
  url: string
  /** The card as the agent serves it. */
  card: JsonObject
  /** The result of verifying the signatures in the card. Undefined if they were not checked. */
  cardSignature?: { verified: true; kid: string } | { verified: false; reason: string }
  skills: ListedSkill[]
  /** How the relay calls a foreign A2A agent. Undefined for agents that the gateway calls directly. */
  relay?: ForeignInterface
  /** OAuth client that registered the agent and may manage it. */
  owner: string
  /** Whether the supervisor started the agent or a client registered it. */
  origin: 'supervised' | 'registered'
  /** Host name of the machine that supervises the agent. */
  host?: string
  /** Whether the agent has proven its key. */
  verified: boolean
  /** DID document from the registration, or undefined if the agent has none. */
  document?: JsonObject
  /** Keys of the document in base58, oldest first. If the agent is verified, the last one was proven. */
  keys?: string[]
  /** Whether the agent may receive work. */
  admitted: boolean
  /** `supervisor`, `open` (for an open registry) or the operator's client id. */
  admittedBy?: string
  /** The revision that an operator admitted, and when. Undefined for agents that no operator has admitted. */
  admittedRevision?: string
  admittedAt?: Timestamp
  /** Whether an operator declared the agent part of this deployment. Its statements about tasks count if so. */
  own?: boolean
  /** Changes to the card since admission, oldest first. Their number is limited. */
  cardChanges?: CardChange[]
  /** Set if the agent is ejected after repeated failures or quarantined by an operator (`by` is the client). */
  quarantine?: { since: Timestamp; reason: string; until?: number; by?: string }
  /** Who may call the agent. Undefined for every caller. It outlives registrations and the removal of the agent. */
  policy?: StoredPolicy
  /** Time at which the agent unregistered. Its slug and operators' decisions are kept until it registers again. */
  left?: Timestamp
  status: AgentStatus
  /** The time of the last status change. */
  since: Timestamp
  registeredAt: Timestamp
  lastSeen?: Timestamp
  /** Milliseconds since 1970. */
  leaseUntil: number
  /** Whether the agent has ever sent a heartbeat. Until then it is probed. */
  sendsHeartbeats: boolean
  /** The reported load. If the agent has replicas, this is their combined load. */
  load: Load
  /** The processes of an agent that runs in several, oldest first. Never empty. The first has the entry's `url`. */
  replicas?: Replica[]
  measurements?: Measurements
  /** The newest probe of the agent with its own examples. It may be of an earlier revision. */
  exampleProbe?: ExampleProbe
}

/** The fields that a registration provides. */
export type Announcement = Pick<
  AgentEntry,
  'name' | 'description' | 'url' | 'card' | 'skills' | 'owner' | 'origin' | 'verified' | 'admitted'
> &
  Partial<
    Pick<AgentEntry, 'did' | 'document' | 'keys' | 'admittedBy' | 'host' | 'cardSignature' | 'relay'>
  > & {
    /** Id of the registering process if the agent runs in several. */
    replicaId?: string
    /** Id of the entry that the gateway renews by itself. The entry must still exist with this address and owner. */
    renews?: string
  }

/** Fields that an entry has even before its first registration. */
export type NewEntryFields = Pick<
  AgentEntry,
  'id' | 'slug' | 'registeredAt' | 'sendsHeartbeats' | 'load' | 'left'
>

/** Returns the entry, or undefined if the agent has unregistered. */
export function unlessLeft(entry: AgentEntry | undefined): AgentEntry | undefined {
  return entry?.left === undefined ? entry : undefined
}

/**
 * Returns the names by which a token's audience may name the agent. An unproven DID does not count, because it may belong
 * to another agent, which would accept the token.
 */
export function audienceNamesOf(
  { slug, did, url, verified }: Pick<AgentEntry, 'slug' | 'did' | 'url' | 'verified'>,
  gatewayUrl: string,
): string[] {
  return [url, `${gatewayUrl}/agents/${slug}`, ...(verified && did !== undefined ? [did] : [])]
}
