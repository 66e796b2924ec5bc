/**
 * What one context feedback about one agent: the counted words of its messages, never their text or order, and how it went.
 * It is what the gateway stores; a context that is cleared takes its examples with it.
 */
export interface TrainingExample {
  /** Id of the agent that did the work. */
  agent: string
  /** Key of the context; examples of one (context, agent) are one record, replaced as the context goes on. */
  context: string
  /** Key of who owned the task: the influence of each caller is bounded. */
  caller: string
  /** Milliseconds since 1970; older examples count less. */
  at: number
  /** −1 (rated 1, or failed by the agent's fault) … 1 (rated 5). */
  outcome: number
  /** A caller rated a task of the context. */
  rated?: boolean
  /** Stemmed word → how often. */
  words: Record<string, number>
}
