/**
 * The training example of one context and agent: counted words of the messages, without their text or order,
 * and the outcome. The gateway stores it until the context is cleared.
 */
export interface TrainingExample {
  /** Id of the agent. */
  agent: string
  /** Key of the context. There is one record per context and agent, replaced as the context continues. */
  context: string
  /** Key of the task's owner: the influence of each caller is bounded. */
  caller: string
  /** Milliseconds since 1970; older examples count less. */
  at: number
  /** −1 (rated 1, or failed by the agent's fault) … 1 (rated 5). */
  outcome: number
  /** Whether a caller rated a task of the context. */
  rated?: boolean
  /** Stem → count. */
  words: Record<string, number>
}
