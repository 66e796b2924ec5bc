import { type AgentFeedback, feedbackShareOf } from '../score/learning.ts'
import type { Unit } from '../score/profile.ts'
import type { TrainingExample } from '../score/training-example.ts'

/** The training examples of one agent and the sums computed from them. */
export interface AgentModel {
  agent: string
  /** Index of the agent in the arrays of sums. */
  number: number
  /** Keyed by context, because a later example of a context replaces the earlier one. */
  examples: Map<string, TrainingExample>
  /** The unit of the agent as a whole, if the agent is indexed. */
  own: Unit | undefined
  /**
   * Whether enough callers gave enough positive examples to raise the agent's score. Until then, examples only
   * lower it.
   */
  boosted: boolean
  feedback: AgentFeedback
  asOf: number
  /** The total weight of all examples when length and direction of the typical texts were computed. */
  readAt: number
}

/**
 * Number of contexts with positive examples needed to raise an agent's score. With fewer, one text would count too
 * much.
 */
export const contextsMin = 5

export const nothing: AgentFeedback = { weight: 0, features: new Map(), typical: new Map() }

export const newAgentModel = (agent: string, number: number, own: Unit | undefined): AgentModel => ({
  agent,
  number,
  examples: new Map(),
  own,
  boosted: false,
  feedback: nothing,
  asOf: 0,
  readAt: 0,
})

/** Whether there are enough positive examples from enough callers. */
export function isBoosted(examples: readonly TrainingExample[], callersMin: number): boolean {
  const good = examples.filter(({ outcome }) => outcome > 0)
  return good.length >= contextsMin && new Set(good.map(({ caller }) => caller)).size >= callersMin
}

/** Fraction of the knowledge about the agent that comes from examples; 0 until the agent is boosted. */
export const feedbackShareOfModel = ({ boosted, feedback }: AgentModel): number =>
  boosted ? feedbackShareOf(feedback.weight) : 0

/**
 * Removes the oldest example of the caller with the most examples, so that no caller displaces the examples
 * of others.
 */
export function dropOldestOfLargestCaller(examples: Map<string, TrainingExample>): TrainingExample {
  const counts = new Map<string, number>()
  for (const { caller } of examples.values()) counts.set(caller, (counts.get(caller) ?? 0) + 1)
  const most = Math.max(...counts.values())
  for (const example of examples.values()) {
    if (counts.get(example.caller) !== most) continue
    examples.delete(example.context)
    return example
  }
  throw new Error('The agent has no training examples')
}
