import type { Query } from './query.ts'

/**
 * Knowledge beyond the agent's own texts. A gateway has more of it than a single agent; every field may be
 * absent.
 */
export interface Knowledge {
  /** How well a stem distinguishes agents: its rarity among the texts of all agents. */
  rarityOf?: (stem: string) => number
  /** Evidence of the agent's past work for a feature of a text; negative: against the agent. */
  learned?: (feature: string) => number
  /** Similarity of the text to the agent's positive examples, as a share of the mass. */
  past?: (query: Query) => number
  /**
   * Whether an example of the agent contains the feature; otherwise `learned` reflects its own words only.
   */
  isInExamples?: (feature: string) => boolean
  /**
   * Weight of feedback for the text, 0..1. Lower when examples of an agent that is not boosted fit the text
   * better.
   */
  feedbackWeight?: (query: Query, mass: number) => number
  /** How much of the knowledge about the agent comes from examples, 0..1. Default 0. */
  known?: number
  /** The maximum feedback of any agent for the text, at most `mass`. */
  feedbackMost?: (query: Query, mass: number) => number
  /** Cosine of each skill's embedding with the query embedding, 0..1, in the order of the skills. */
  nearness?: readonly number[]
  /** Why embeddings were not used although they are configured. */
  withoutEmbeddings?: string
}

/** Without knowledge of other agents every stem has this rarity. */
export const defaultRarity = 5
