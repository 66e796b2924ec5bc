/** The five parts of a score, each 0..1. */
export interface Weights {
  skillMatch: number
  ioCompatibility: number
  performance: number
  load: number
  cost: number
}

/** A question to an agent, or a gateway, about a task that a caller considers to send. */
export interface NegotiationQuery {
  taskSummary?: string | undefined
  taskDetails?: string | undefined
  inputMimeTypes?: string[] | undefined
  outputMimeTypes?: string[] | undefined
  maxLatencyMs?: number | undefined
  /** In whole units, a decimal text. */
  maxCostAmount?: string | undefined
  requiredTools?: string[] | undefined
  forbiddenTools?: string[] | undefined
  minScore?: number | undefined
  weights?: Weights | undefined
  /** Candidates wanted of a gateway. */
  limit?: number | undefined
}

/** How well an agent suits the task. */
export interface NegotiationAnswer {
  canHandle: boolean
  /** 0..1 */
  score: number
  confidence: number
  rejectionReason?: string
  reasons: string[]
  subscores: Weights
  /** The best first. */
  skillMatches: { skillId: string; skillName: string; score: number; reasons: string[] }[]
  queueDepth: number
  estimatedLatencyMs?: number
  /** In whole units, a decimal text; "0" when the agent is free. */
  estimatedCostAmount?: string
}

/** An agent of a gateway. */
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
  /** Slug. */
  agent: string
  rule: string
  /** The agent is expected back. */
  temporary?: true
}

/** The answer of a gateway: the best agent, and how the others compare. */
export interface GatewayNegotiation {
  id: string
  best: Candidate | undefined
  /** The best first. */
  candidates: Candidate[]
  candidatesTotal: number
  excluded: ExcludedAgent[]
  excludedTotal: number
}

/** The record of a message that a gateway routed, or of a question that it answered. */
export interface RoutingRecord {
  /** `agent/negotiation`, or the method of the message. */
  method: string
  decidedAt: string
  /** Slug of the agent that got the message. */
  chosen: string | null
  tried: { agent: string; outcome: string }[]
  /** Without the texts of the caller. */
  asked: NegotiationQuery
}
