/** The features of a message's instruction that are stored for learning, in place of its text. */
export interface TaskFeatures {
  /** Maps each stem to its count. */
  words: Record<string, number>
  /** The sentence vector: 384 integers of 8 bits in base64. Absent without an encoder. */
  vector?: string
}

/**
 * The training example of one context and agent: the messages' counted words, without their text or order,
 * and the outcome. The gateway stores it until the context is cleared. A correction has its own context.
 */
export interface TrainingExample extends TaskFeatures {
  /** Id of the agent. */
  agent: string
  /** Key of the context. There is one record per context and agent, which is replaced as the context continues. */
  context: string
  /** Key of the task's owner, because each caller's influence is bounded. */
  caller: string
  /** Milliseconds since 1970. Older examples count less. */
  at: number
  /** From −1 (rated 1, or failed through the agent's fault) to 1 (rated 5). */
  outcome: number
  /** Whether a caller rated a task of the context. */
  rated?: boolean
  /** Whether the caller named the agent and used it again later, without a rating. The outcome is 1. */
  used?: boolean
  /** Key of a further context with which the example is removed: that of the task that a correction is about. */
  removedWith?: string
}

/** Identifies a text by its words, however often each occurs. */
export const wordsKey = (words: TaskFeatures['words']): string => Object.keys(words).toSorted().join(' ')
