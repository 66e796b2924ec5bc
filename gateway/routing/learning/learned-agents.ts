import { type LearnedSummary, summaryOf } from '@parley/negotiation/index/learned-summary'
import { ParleyError } from '@parley/wire/errors'
import type { AgentEntry } from '../../registry/entry.ts'
import type { FeedbackRecorder } from './feedback.ts'

/** Sums up and removes the training examples of agents. */
export class LearnedAgents {
  readonly #feedback: FeedbackRecorder
  readonly #callersMin: number

  /** @param callersMin see `FeedbackModelOptions` */
  constructor(feedback: FeedbackRecorder, callersMin: number) {
    this.#feedback = feedback
    this.#callersMin = callersMin
  }

  /** Whether the gateway learns (ROUTE_LEARNING). */
  get learns(): boolean {
    return this.#feedback.learns
  }

  async describe({ id, description, skills }: AgentEntry): Promise<LearnedSummary> {
    const ofSkills = skills.flatMap((skill) => [skill.name, skill.description, ...skill.tags])
    const examples = await this.#feedback.examplesOf(id)
    return summaryOf(examples, {
      callersMin: this.#callersMin,
      texts: [description, ...ofSkills],
    })
  }

  /**
   * Removes all examples of an agent, or those of the caller with a key that begins with `caller`.
   * @returns how many were removed
   * @throws ParleyError NotFound, InvalidParams if no caller or more than one has such a key
   */
  async forget({ id }: AgentEntry, caller?: string): Promise<number> {
    if (caller === undefined) return this.#feedback.forgetAgent(id)
    const examples = await this.#feedback.examplesOf(id)
    const keys = new Set(examples.map((example) => example.caller))
    const found = [...keys].filter((key) => key.startsWith(caller))
    const [key] = found
    if (key === undefined)
      throw new ParleyError('NotFound', {
        message: 'The agent has no examples of this caller: GET the same path lists the callers',
        data: { reason: 'caller' },
      })
    if (found.length > 1)
      throw new ParleyError('InvalidParams', {
        message: `The hashes of several callers begin with "${caller}": send more characters`,
      })
    return this.#feedback.forgetAgent(id, key)
  }
}
