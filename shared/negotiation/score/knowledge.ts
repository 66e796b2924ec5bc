import type { Query } from './query.ts'

/**
 * Knowledge beyond the agent's own texts. A gateway knows more than a single agent does; every field may be
 * absent.
 */
export interface Knowledge {
  /** How well a stem distinguishes agents: its rarity among the texts of all agents. */
  rarityOf?: (stem: string) => number
  /** Evidence from the agent's past work for a feature of a text. Negative evidence counts against the agent. */
  learned?: (feature: string) => number
  /** Similarity of the text to the agent's positive examples, as a fraction of the mass. */
  past?: (query: Query) => number
  /**
   * Whether an example of the agent contains the feature. Otherwise, `learned` reflects only the agent's own words.
   */
  isInExamples?: (feature: string) => boolean
  /**
   * Weight of feedback for the text, 0..1. Lower if examples of an agent that is not boosted fit the text
   * better.
   */
  feedbackWeight?: (query: Query, mass: number) => number
  /** Fraction of the knowledge about the agent that comes from examples, 0..1. Default 0. */
  known?: number
  /** The maximum feedback of any agent for the text, at most `mass`. */
  feedbackMost?: (query: Query, mass: number) => number
  /** Cosine of each skill's embedding with the query embedding, 0..1, in the order of the skills. */
  nearness?: readonly number[]
  /** Why embeddings were not used although an endpoint is configured. */
  withoutEmbeddings?: string
}

/** Without knowledge of other agents, every stem has this rarity. */
export const defaultRarity = 5
