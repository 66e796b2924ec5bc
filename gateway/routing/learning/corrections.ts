import type { TrainingExample } from '@parley/negotiation/score/training-example'
import type { RoutingStore, Verdict } from '../store/routing-store.ts'
import { type FeedbackRecorder, isEmpty, keyOf } from './feedback.ts'

export interface CorrectionsOptions {
  store: Pick<RoutingStore, 'findDecision' | 'addVerdict'>
  feedback: FeedbackRecorder
}

/** The ids of the agents that a verdict is about. */
export interface JudgedAgents {
  /** The agent that was chosen, if one was, and if it is still registered. */
  chosen: string | undefined
  /** The agent that would have been right. */
  right: string | undefined
}

/**
 * Why a verdict adds no example: ROUTE_LEARNING is off, the decision has no words of an instruction (or they were removed by
 * `contexts/clear`), or no registered agent is concerned.
 */
export type NotLearned = 'learning_off' | 'no_words' | 'no_agent'

const [good, bad] = [1, -1]

/**
 * Makes training examples from verdicts about decisions. The examples of one person about one decision have their own
 * context, so that a second verdict replaces the first and several people count separately. The person is the caller of the examples,
 * so that the influence of the person is bounded.
 */
export class Corrections {
  readonly #options: CorrectionsOptions

  constructor(options: CorrectionsOptions) {
    this.#options = options
  }

  /** Stores the verdict and learns from it. Returns undefined if there is no such decision. */
  async record(
    id: string,
    verdict: Verdict,
    agents: JudgedAgents,
  ): Promise<{ notLearned: NotLearned | undefined } | undefined> {
    const { store, feedback } = this.#options
    const { context: cleared } = (await store.findDecision(id)) ?? {}
    const context = keyOf(verdict.by, `decision ${id}`)
    return feedback.whileKept(cleared === undefined ? [context] : [context, cleared], async () => {
      if (!(await store.addVerdict(id, verdict))) return undefined
      if (!feedback.learns) return { notLearned: 'learning_off' }
      await feedback.forgetKey(context)
      // Read again, because the context may have been cleared since.
      const features = (await store.findDecision(id))?.features
      if (features === undefined || isEmpty(features)) return { notLearned: 'no_words' }
      const outcomes = outcomesOf(verdict, agents)
      for (const [agent, outcome] of outcomes) {
        const example: TrainingExample = {
          agent,
          context,
          caller: keyOf(verdict.by, ''),
          at: verdict.at,
          outcome,
          rated: true,
          ...features,
          ...(cleared !== undefined && { removedWith: cleared }),
        }
        await feedback.train(example)
      }
      return { notLearned: outcomes.length === 0 ? 'no_agent' : undefined }
    })
  }
}

function outcomesOf(
  { verdict }: Verdict,
  { chosen, right }: JudgedAgents,
): [agent: string, outcome: number][] {
  if (verdict === 'right') return chosen === undefined ? [] : [[chosen, good]]
  const judged: [string | undefined, number][] = [
    [chosen, bad],
    [right, good],
  ]
  return judged.flatMap(([agent, outcome]) => (agent === undefined ? [] : [[agent, outcome]]))
}
