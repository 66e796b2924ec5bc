import type { Weights } from './request.ts'

/** The weights that gateway and command line use (spec/negotiation.md#defaults). */
export const usualWeights: Weights = {
  skillMatch: 0.55,
  ioCompatibility: 0.2,
  performance: 0.15,
  load: 0.05,
  cost: 0.05,
}

/**
 * The default of ROUTE_MIN_SCORE: with the usual weights and words alone, four fifths of the texts that an agent of a small
 * registry serves have a higher score (`bench/routing`).
 */
export const routeMinScore = 0.76
