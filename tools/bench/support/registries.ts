import { AgentIndex } from '@parley/negotiation/index/agent-index'
import { trainingWords } from '@parley/negotiation/score/learning'
import type { Offer } from '@parley/negotiation/score/offer'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { agents, numbersFrom, type Text, texts } from '../../testing/routing-list.ts'
import { embedAgent, exampleVector, type Mode } from './meaning.ts'
import { offerOf, shuffled } from './routing-data.ts'

/** An index of offers, by name, with vectors if the mode needs them. */
export async function indexOf(offers: readonly Offer[], mode: Mode): Promise<AgentIndex> {
  const index = new AgentIndex()
  for (const offer of offers) {
    const id = offer.name ?? ''
    index.put(id, id.toLowerCase(), offer)
    if (mode === 'meaning') await embedAgent(index, id, offer)
  }
  return index
}

/** A task that the agent completed, rated 5 by one of thirty callers. */
export const ratedTask = ({ query, agent }: Text, number: number, mode: Mode): TrainingExample => ({
  agent,
  context: `context-${number}`,
  caller: `caller-${number % 30}`,
  at: Date.now(),
  outcome: 1,
  words: trainingWords(query),
  ...exampleVector(query, mode),
})

export function teach(index: AgentIndex, done: readonly Text[], mode: Mode): void {
  index.learn(...done.map((text, number) => ratedTask(text, number, mode)))
}

/** A registry of some agents, with texts that they serve and texts that none of them serves. */
export interface Reduced {
  index: AgentIndex
  served: readonly Text[]
  others: readonly Text[]
}

/**
 * A registry of `kept` random agents, after rated tasks if `trained`. The texts are not among these tasks.
 * @param more further agents, which serve none of the texts
 */
export async function reducedRegistry(
  kept: number,
  seed: number,
  trained: boolean,
  mode: Mode,
  more: readonly Offer[] = [],
): Promise<Reduced> {
  const names = new Set(
    shuffled(agents, numbersFrom(seed + 100))
      .slice(0, kept)
      .map(({ name }) => name),
  )
  const offers = agents.filter(({ name }) => names.has(name)).map(offerOf)
  const index = await indexOf([...offers, ...more], mode)
  const mixed = shuffled(texts, numbersFrom(seed))
  const has = ({ agent }: Text) => names.has(agent)
  if (trained) teach(index, mixed.slice(0, 1500).filter(has), mode)
  const rest = mixed.slice(1500, 2250)
  return { index, served: rest.filter(has), others: rest.filter((text) => !has(text)) }
}
