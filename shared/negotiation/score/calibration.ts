/** The inputs of the probability of an agent besides its evidence. Equal for all agents of one ranking. */
export interface Registry {
  /** Number of agents that the caller may see. */
  agents: number
  /** Fraction of the knowledge about these agents that comes from training examples, 0..1. */
  trained: number
}

export const soleAgent: Registry = { agents: 1, trained: 0 }

/** Coefficients of the logarithm of the odds, fitted by `npm run bench -- calibration` (docs/routing.md). */
interface Coefficients {
  evidence: number
  constant: number
  evidenceTrained: number
  constantTrained: number
  agents: number
}

/** Ranked by words only, and by words and meaning. */
const byWords: Coefficients = {
  evidence: 28.306,
  constant: -1.074,
  evidenceTrained: -22.464,
  constantTrained: 1.614,
  agents: -0.804,
}
const byMeaning: Coefficients = {
  evidence: 9.296,
  constant: -0.107,
  evidenceTrained: -4.048,
  constantTrained: -0.509,
  agents: -0.675,
}

/** The coefficients were fitted for 10 to 1,000 agents. */
const agentsMax = 1000
/** An agent that is alone is judged as if there were a few others: requests are for agents of many kinds. */
const agentsMin = 5

/** The logarithm of odds as a linear function of the evidence. */
export interface OddsLine {
  slope: number
  constant: number
}

export function oddsLine(hasMeaning: boolean, { agents, trained }: Registry): OddsLine {
  const by = hasMeaning ? byMeaning : byWords
  const size = Math.log(Math.min(agentsMax, Math.max(agentsMin, agents)))
  return {
    slope: by.evidence + by.evidenceTrained * trained,
    constant: by.constant + by.constantTrained * trained + by.agents * size,
  }
}

/**
 * The logarithm of the odds that an agent can do a task, where half of the tasks are such that some agent can do them.
 * Strictly increasing in the evidence, so it keeps the order of agents with vectors, and of agents without vectors.
 */
export function logOdds(evidence: number, hasMeaning: boolean, registry: Registry): number {
  const { slope, constant } = oddsLine(hasMeaning, registry)
  return slope * evidence + constant
}

/** No text is certain to be understood. */
const most = 0.99

/** The probability for a logarithm of odds. */
export const probability = (odds: number): number => most / (1 + Math.exp(-odds))

/** The inverse of `probability`, slightly lower to allow for rounding. */
export function logOddsFor(value: number): number {
  if (value <= 0) return Number.NEGATIVE_INFINITY
  if (value >= most) return Number.POSITIVE_INFINITY
  return Math.log(value / (most - value)) - 1e-9
}
