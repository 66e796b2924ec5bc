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

/** An agent's measurements, with the decay over time already applied. */
export interface Measurements {
  /** Number of samples. With fewer than `measuredSamplesMin`, the declared values count. */
  samples: number
  /** Median time from acceptance to the end of a task, in milliseconds. */
  latencyMs?: number
  /** Fraction of successful tasks, 0..1. */
  successShare?: number
  /** What became of the agent's own examples when the gateway tried them. They count as the first samples. */
  examples?: ExampleResults
}

/** Examples that the agent refused to start, for example without a payment, are in neither number. */
export interface ExampleResults {
  completed: number
  /** Including those that failed or timed out. */
  tried: number
}

/** The part of an offer that changes while the agent works. */
export interface Facts {
  /** Number of waiting tasks. */
  queueDepth: number
  /** Number of running tasks; absent if unknown. */
  activeTasks?: number
  measured?: Measurements
  /** Price of a task in whole units (`"0.01"`); absent if the agent is free. */
  price?: { amount: string }
}

/** An agent's offer for negotiations. */
export interface Offer extends Facts {
  /** The agent's name and description count like those of its skills. */
  name?: string
  description?: string
  skills: readonly OfferedSkill[]
}
