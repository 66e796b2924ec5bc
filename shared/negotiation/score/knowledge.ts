import type { Registry } from './calibration.ts'
import type { Query } from './query.ts'

/**
 * Knowledge beyond the agent's own texts. A gateway knows more than a single agent does; every field may be
 * absent.
 */
export interface Knowledge {
  /** How well a stem distinguishes agents: its rarity among the texts of all agents. */
  rarityOf?: (stem: string) => number
  /** The agents among which this one is chosen. Default: only this one. */
  registry?: Registry
  /** How near each skill is to the request in meaning, 0..1, in the order of the skills. */
  nearness?: readonly number[]
  /** How near the request is to skills in general. Default 0. */
  background?: number
  /** The evidence of past work about the agent for the request. */
  learned?: (query: Query) => Learned
  /** Why embeddings were not used although an endpoint is configured. */
  withoutEmbeddings?: string
}

/** Evidence from past work of all agents for one request and one agent. */
export interface Learned {
  /** Evidence from the agent's own examples, negative if similar tasks failed. */
  evidence: number
  /** Fraction of the knowledge about the agent that comes from examples, 0..1. */
  known: number
  /** The maximum evidence of any agent. */
  most: number
  /** The maximum evidence that the own texts of any agent give. */
  bestOwn: number
  /** Counts the similar examples, for the reasons. */
  similar: () => SimilarExamples
}

export interface SimilarExamples {
  good: number
  bad: number
  /** Numbers of callers of the good and the bad examples. */
  callers: { good: number; bad: number }
  /** Number of callers that used the agent again. */
  users: number
}

/** Without knowledge of other agents, every stem has this rarity. */
export const defaultRarity = 5
