/** The weights of the five parts of a score, each from 0 to 1. */
export interface Weights {
  skillMatch: number
  ioCompatibility: number
  performance: number
  load: number
  cost: number
}

/** A question to an agent or a gateway about a task that the caller may send. */
export interface NegotiationQuery {
  taskSummary?: string | undefined
  taskDetails?: string | undefined
  inputMimeTypes?: string[] | undefined
  outputMimeTypes?: string[] | undefined
  maxLatencyMs?: number | undefined
  /** In whole units, as a decimal string. */
  maxCostAmount?: string | undefined
  requiredTools?: string[] | undefined
  forbiddenTools?: string[] | undefined
  minScore?: number | undefined
  weights?: Weights | undefined
  /** The number of candidates that a gateway should return. */
  limit?: number | undefined
}

/** How well an agent suits the task. */
export interface NegotiationAnswer {
  canHandle: boolean
  /** From 0 to 1. */
  score: number
  confidence: number
  rejectionReason?: string
  reasons: string[]
  subscores: Weights
  /** Best first. */
  skillMatches: { skillId: string; skillName: string; score: number; reasons: string[] }[]
  queueDepth: number
  estimatedLatencyMs?: number
  /** In whole units, as a decimal string; "0" if the agent is free. */
  estimatedCostAmount?: string
}

/** An agent behind a gateway. */
export interface NamedAgent {
  slug: string
  name: string
  did: string | null
  url: string
}

export interface Candidate {
  agent: NamedAgent
  answer: NegotiationAnswer
}

export interface ExcludedAgent {
  /** The agent's slug. */
  agent: string
  rule: string
  /** Set if the agent is expected to become available again. */
  temporary?: true
}

/** A part of a request that asks for work by itself. */
export interface Need {
  /** The position in the request, from 1. */
  position: number
  /** Absent in stored records. */
  text?: string
  /** The slug of the agent that would serve the part; null if no agent reaches the minimum score. */
  agent: string | null
  /** The agent's score for this part, or 0. */
  score: number
}

/** A gateway's answer: the best agent, and how the others compare. */
export interface GatewayNegotiation {
  id: string
  best: Candidate | undefined
  /** Best first. */
  candidates: Candidate[]
  candidatesTotal: number
  excluded: ExcludedAgent[]
  excludedTotal: number
  /** In the order of the text; absent if the request has only one part. */
  needs?: Need[]
}

/** The record of a message that a gateway routed or of a negotiation request that it answered. */
export interface RoutingRecord {
  /** `agent/negotiation`, or the method of the message. */
  method: string
  decidedAt: string
  /** The slug of the agent that received the message. */
  chosen: string | null
  tried: { agent: string; outcome: string }[]
  /** The query without the caller's text. */
  asked: NegotiationQuery
}
