/** The fields of a skill that a negotiation reads. */
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

/** Measurements of an agent, with the decay over time already applied. */
export interface Measurements {
  /** Number of samples; with fewer than `measuredSamplesMin` the declared values count. */
  samples: number
  /** Median time from acceptance to the end of a task, in milliseconds. */
  latencyMs?: number
  /** Share of successful tasks, 0..1. */
  successShare?: number
}

/** The part of an offer that changes while the agent works. */
export interface Facts {
  /** Waiting tasks. */
  queueDepth: number
  /** Running tasks; absent when unknown. */
  activeTasks?: number
  measured?: Measurements
  /** Price of a task in whole units (`"0.01"`); absent when free. */
  price?: { amount: string }
}

/** An agent's offer for negotiations. */
export interface Offer extends Facts {
  /** Name and description of the agent count like those of its skills. */
  name?: string
  description?: string
  skills: readonly OfferedSkill[]
}
