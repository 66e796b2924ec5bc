import type { AgentFeedback } from '../score/learning.ts'
import type { Unit } from '../score/profile.ts'
import type { TrainingExample } from '../score/training-example.ts'
import type { Meaning } from '../words/meaning.ts'

/** An agent with examples. */
export interface AgentModel {
  agent: string
  /** Its place in what is summed up for a text. */
  number: number
  /** By context: a later example of the same context takes the place of the earlier. */
  examples: Map<string, TrainingExample>
  /** The agent as a whole by its own words, where it is known. */
  own: Unit | undefined
  /** Enough went well, for enough callers, that its examples speak for it. Until then they only speak against it. */
  boosted: boolean
  feedback: AgentFeedback
  asOf: number
  /** Length and direction of its typical texts by the rarity of words, and how much was learned by all when they were read. */
  length: number
  meaning: Meaning | undefined
  readAt: number
}

export const nothing: AgentFeedback = { weight: 0, features: new Map(), typical: new Map() }

export const newAgentModel = (agent: string, number: number, own: Unit | undefined): AgentModel => ({
  agent,
  number,
  examples: new Map(),
  own,
  boosted: false,
  feedback: nothing,
  asOf: 0,
  length: 0,
  meaning: undefined,
  readAt: 0,
})

/** Takes out the oldest example of the caller who gave the most: nobody pushes out what others feedback. */
export function dropOldestOfLargestCaller(examples: Map<string, TrainingExample>): TrainingExample {
  const counts = new Map<string, number>()
  for (const { caller } of examples.values()) counts.set(caller, (counts.get(caller) ?? 0) + 1)
  const most = Math.max(...counts.values())
  for (const example of examples.values()) {
    if (counts.get(example.caller) !== most) continue
    examples.delete(example.context)
    return example
  }
  throw new Error('there are no lessons')
}
