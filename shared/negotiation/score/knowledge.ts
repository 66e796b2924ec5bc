import type { Query } from './query.ts'

/** What is known beyond an agent's own texts; a gateway knows more than an agent alone. All of it may be absent. */
export interface Knowledge {
  /** How much a stem tells agents apart: its rarity among the texts of all agents. */
  rarityOf?: (stem: string) => number
  /** How much this agent's past work speaks for each feature of a text; negative: against it. */
  learned?: (feature: string) => number
  /** How like the text is to all that this agent did well, as a share of what its words could say. */
  past?: (query: Query) => number
  /** Whether a example of this agent holds the feature; else `learned` speaks of its own words alone. */
  isInExamples?: (feature: string) => boolean
  /** What of the examples counts for the text, 0..1: less, where examples of an agent with too few of them fit it better. */
  feedbackWeight?: (query: Query, mass: number) => number
  /** How much of what is known about this agent its examples tell, 0..1; absent: none. */
  known?: number
  /** The most that the examples of any agent say for the text, of at most `mass`. */
  feedbackMost?: (query: Query, mass: number) => number
  /** Nearness in meaning of each skill to the request text (embeddings), 0..1, in the order of the skills. */
  nearness?: readonly number[]
  /** Why embeddings were not used, where they should have been. */
  withoutEmbeddings?: string
}

/** For an agent alone every word tells apart alike; its rarity in English is counted beside. */
export const defaultRarity = 5
