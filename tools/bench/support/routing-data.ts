import type { Offer } from '@parley/negotiation/score/offer'
import type { NegotiationRequest } from '@parley/negotiation/score/request'
import type { Weights } from '@parley/negotiation/score/weights'
import { skillOf } from '../../testing/routing-list.ts'

export const wordsAlone: Weights = { skillMatch: 1, ioCompatibility: 0, performance: 0, load: 0, cost: 0 }
export const request = (taskSummary: string, weights = wordsAlone, minScore = 0): NegotiationRequest => ({
  taskSummary,
  weights,
  minScore,
})

/** An agent with one skill that repeats the agent's description. */
export function offerOf({ name, description }: { name: string; description: string }): Offer {
  return { name, description, skills: [skillOf(name)], queueDepth: 0 }
}

export function shuffled<T>(all: readonly T[], next: () => number): T[] {
  return all
    .map((one) => ({ one, place: next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one)
}
