import { queryFields } from '@parley/wire/codecs/parley/negotiation'
import { probability } from './calibration.ts'
import { brokenConstraint } from './constraints.ts'
import { type Estimate, estimateOf, successOf } from './estimate.ts'
import type { Knowledge } from './knowledge.ts'
import type { Offer } from './offer.ts'
import { profileOf } from './profile.ts'
import { queryOf } from './query.ts'
import { defaultsReason, reasonsOf } from './reasons.ts'
import type { NegotiationRequest } from './request.ts'
import { oddsOf, ownOf, type SkillMatch, skillMatch, skillMatches } from './skill-match.ts'
import { costScore, ioCompatibility, loadScore, performanceScore } from './sub-scores.ts'
import { noScores, rounded, type Subscores, sharesOf, weightedSum } from './weights.ts'

export interface NegotiationResult {
  canHandle: boolean
  /** Between 0 and 1, with at most 4 decimals. */
  score: number
  /** The unrounded score, which decides between equal scores. */
  exactScore: number
  /** The logarithm of the odds of the skill match, which distinguishes matches that are nearly certain. −∞ if nothing matches. */
  matchOdds: number
  confidence: number
  rejectionReason?: string
  /** The hard constraint that the agent breaks, which rules it out as a candidate. */
  brokenConstraint?: string
  reasons: string[]
  subscores: Subscores
  /** Best first, at most 20. */
  skillMatches: SkillMatch[]
  queueDepth: number
  estimatedLatencyMs?: number
  /** The price in whole units as the agent declares it; "0" if the agent is free. */
  estimatedCostAmount?: string
}

/** A lower match by vectors is no match. */
const nearMatchMin = 0.1

/**
 * Scores an offer for a request. Pure function. A broken hard constraint gives score 0. Agents use it for their
 * response, gateways for ranking with more knowledge.
 */
export function negotiate(
  offer: Offer,
  request: NegotiationRequest,
  knowledge: Knowledge = {},
): NegotiationResult {
  const estimate = estimateOf(offer)
  const broken = brokenConstraint(offer, request)
  if (broken !== undefined) return refused(broken, offer, request, estimate)
  const query = queryOf(request)
  const profile = profileOf(offer)
  const matchOdds = oddsOf(ownOf(profile, query, knowledge), query, knowledge)
  const subscores = subscoresOf(probability(matchOdds), offer, request, estimate)
  const exactScore = weightedSum(sharesOf(request.weights), subscores)
  const score = rounded(exactScore)
  const matches = skillMatches(profile, query, knowledge, offer)
  const minScore = request.minScore ?? 0
  // With vectors, every agent has some match with every request.
  const isMatch = subscores.skillMatch > (knowledge.nearness === undefined ? 0 : nearMatchMin)
  const canHandle = isMatch && score >= minScore
  const refusal = isMatch
    ? `score ${score} is below ${queryFields.minScore} ${minScore}`
    : 'no skill matches the task'
  return {
    canHandle,
    score,
    exactScore,
    matchOdds,
    confidence: rounded(subscores.skillMatch),
    reasons: [
      ...reasonsOf({ offer, subscores, matches, estimate, query, knowledge }),
      ...defaultsReason(request),
    ],
    subscores: roundedScores(subscores),
    skillMatches: matches,
    ...(canHandle ? {} : { rejectionReason: refusal }),
    ...figuresOf(offer, estimate),
  }
}

/** The unrounded score of an offer that breaks no hard constraint. */
export function exactScoreOf(offer: Offer, request: NegotiationRequest, knowledge: Knowledge): number {
  return scoreWith(skillMatch(profileOf(offer), queryOf(request), knowledge), offer, request)
}

/** Like `exactScoreOf`, but with a known skill match. */
export function scoreWith(match: number, offer: Offer, request: NegotiationRequest): number {
  return weightedSum(sharesOf(request.weights), subscoresOf(match, offer, request, estimateOf(offer)))
}

function subscoresOf(
  match: number,
  offer: Offer,
  request: NegotiationRequest,
  estimate: Estimate,
): Subscores {
  return {
    skillMatch: match,
    ioCompatibility: ioCompatibility(offer.skills, request, queryOf(request).payloadTypes),
    performance: performanceScore(estimate.latencyMs, request.maxLatencyMs, successOf(offer)),
    load: loadScore(offer),
    cost: costScore(offer.price?.amount, request.maxCostAmount),
  }
}

function refused(
  broken: string,
  offer: Offer,
  request: NegotiationRequest,
  estimate: Estimate,
): NegotiationResult {
  return {
    canHandle: false,
    score: 0,
    exactScore: 0,
    matchOdds: Number.NEGATIVE_INFINITY,
    confidence: 1,
    brokenConstraint: broken,
    rejectionReason: broken,
    reasons: [broken, ...defaultsReason(request)],
    subscores: noScores,
    skillMatches: [],
    ...figuresOf(offer, estimate),
  }
}

function figuresOf({ queueDepth, price }: Offer, { latencyMs }: Estimate) {
  return {
    queueDepth,
    estimatedCostAmount: price?.amount ?? '0',
    ...(latencyMs === undefined ? {} : { estimatedLatencyMs: latencyMs }),
  }
}

function roundedScores(subscores: Subscores): Subscores {
  const { skillMatch: match, ioCompatibility: io, performance, load, cost } = subscores
  return {
    skillMatch: rounded(match),
    ioCompatibility: rounded(io),
    performance: rounded(performance),
    load: rounded(load),
    cost: rounded(cost),
  }
}
