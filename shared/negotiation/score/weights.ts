/** The five weights of a negotiation (spec/negotiation.md#weights). */
export interface Weights {
  skillMatch: number
  ioCompatibility: number
  performance: number
  load: number
  cost: number
}

export type Subscores = { [K in keyof Weights]: number }

export const noScores: Subscores = { skillMatch: 0, ioCompatibility: 0, performance: 0, load: 0, cost: 0 }

/** The weights divided by their sum, or equal shares if all weights are zero. */
export function sharesOf({ skillMatch, ioCompatibility, performance, load, cost }: Weights): Subscores {
  const sum = skillMatch + ioCompatibility + performance + load + cost
  if (sum === 0) return { skillMatch: 0.2, ioCompatibility: 0.2, performance: 0.2, load: 0.2, cost: 0.2 }
  return {
    skillMatch: skillMatch / sum,
    ioCompatibility: ioCompatibility / sum,
    performance: performance / sum,
    load: load / sum,
    cost: cost / sum,
  }
}

/** The weighted sum of the sub-scores. Adds the skill match last, so that the index can bound the sum. */
export function weightedSum(shares: Subscores, subscores: Subscores): number {
  const rest =
    shares.ioCompatibility * subscores.ioCompatibility +
    shares.performance * subscores.performance +
    shares.load * subscores.load +
    shares.cost * subscores.cost
  return Math.min(1, rest + shares.skillMatch * subscores.skillMatch)
}

/** The default weights of the gateway and the command line (spec/negotiation.md#defaults). */
export const defaultWeights: Weights = {
  skillMatch: 0.55,
  ioCompatibility: 0.2,
  performance: 0.15,
  load: 0.05,
  cost: 0.05,
}

/**
 * The default of ROUTE_MIN_SCORE: with the default weights and nothing else against the agent, a probability of 0.40. Of the texts accepted in a
 * registry of ten agents, where half of all texts are served, about six in seven are right (`bench/calibration`).
 */
export const routeMinScore = 0.67

/** Rounds to 4 decimals (spec/negotiation.md#response). */
export const rounded = (value: number): number => Math.round(value * 10_000) / 10_000
