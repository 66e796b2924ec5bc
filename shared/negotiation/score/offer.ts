/** What a negotiation reads of a skill. */
export interface OfferedSkill {
  id: string
  name: string
  description: string
  tags: string[]
  inputModes: string[]
  outputModes: string[]
  examples: string[]
  allowedTools: string[]
  performance: { avgProcessingTimeMs?: number | undefined }
  assessment: { keywords: string[]; specializations: string[]; antiPatterns: string[] }
}

/** What was seen of an agent, rather than what it says; already decayed in time by who measured it. */
export interface Measurements {
  /** How many answers stand behind the figures; below `measuredSamplesMin` what the skills declare counts. */
  samples: number
  /** Typical time from acceptance to the end of a task, in milliseconds. */
  latencyMs?: number
  /** Share of the tasks that ended well, 0..1. */
  successShare?: number
}

/** What changes while an agent works. */
export interface Facts {
  /** Tasks that wait. */
  queueDepth: number
  /** Tasks that run; absent where nobody knows. */
  activeTasks?: number
  measured?: Measurements
  /** What a task costs, in whole units (`"0.01"`); absent = free. */
  price?: { amount: string }
}

/** What an agent brings to a negotiation. */
export interface Offer extends Facts {
  /** The agent's own name and description say what it does as well as its skills do. */
  name?: string
  description?: string
  skills: readonly OfferedSkill[]
}
