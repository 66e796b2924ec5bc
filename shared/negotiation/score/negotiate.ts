import { queryFields } from '@parley/wire/codecs/parley/negotiation'
import { brokenConstraint } from './constraints.ts'
import { type Estimate, estimateOf, successOf } from './estimate.ts'
import type { Knowledge } from './knowledge.ts'
import type { Offer } from './offer.ts'
import { profileOf } from './profile.ts'
import { queryOf } from './query.ts'
import { defaultsReason, reasonsOf } from './reasons.ts'
import type { NegotiationRequest } from './request.ts'
import { rounded } from './rounded.ts'
import { type SkillMatch, skillMatch, skillMatches } from './skill-match.ts'
import { costScore, ioCompatibility, loadScore, performanceScore } from './sub-scores.ts'
import { noScores, type Subscores, sharesOf, weightedSum } from './weighted.ts'

export interface Negotiated {
  canHandle: boolean
  /** 0..1, at most 4 decimals. */
  score: number
  /** What `score` is rounded from: it decides between equal scores. */
  exactScore: number
  confidence: number
  rejectionReason?: string
  /** The hard constraint that the agent breaks; it is then no candidate at all. */
  brokenConstraint?: string
  reasons: string[]
  subscores: Subscores
  /** Best first, at most 20. */
  skillMatches: SkillMatch[]
  queueDepth: number
  estimatedLatencyMs?: number
  /** In whole units, as the agent says it; "0" when it is free. */
  estimatedCostAmount?: string
}

/**
 * Scores the offer for the wanted task; pure. A broken hard constraint is score 0 and says which. The same function
 * answers on an agent and ranks on a gateway, which may know more.
 */
export function negotiate(offer: Offer, wanted: NegotiationRequest, knowledge: Knowledge = {}): Negotiated {
  const estimate = estimateOf(offer)
  const broken = brokenConstraint(offer, wanted)
  if (broken !== undefined) return refused(broken, offer, wanted, estimate)
  const query = queryOf(wanted)
  const profile = profileOf(offer)
  const subscores = subscoresOf(skillMatch(profile, query, knowledge), offer, wanted, estimate)
  const exactScore = weightedSum(sharesOf(wanted.weights), subscores)
  const score = rounded(exactScore)
  const matches = skillMatches(profile, query, knowledge, offer)
  const minScore = wanted.minScore ?? 0
  const canHandle = subscores.skillMatch > 0 && score >= minScore
  const refusal =
    subscores.skillMatch > 0
      ? `score ${score} is below ${queryFields.minScore} ${minScore}`
      : 'no skill matches the task'
  return {
    canHandle,
    score,
    exactScore,
    confidence: rounded(subscores.skillMatch),
    reasons: [
      ...reasonsOf({ offer, subscores, matches, estimate, query, knowledge }),
      ...defaultsReason(wanted),
    ],
    subscores: roundedScores(subscores),
    skillMatches: matches,
    ...(canHandle ? {} : { rejectionReason: refusal }),
    ...figuresOf(offer, estimate),
  }
}

/** The unrounded score of an offer that breaks no hard constraint. */
export function exactScoreOf(offer: Offer, wanted: NegotiationRequest, knowledge: Knowledge): number {
  return scoreWith(skillMatch(profileOf(offer), queryOf(wanted), knowledge), offer, wanted)
}

/** The same where the skill match is known. */
export function scoreWith(match: number, offer: Offer, wanted: NegotiationRequest): number {
  return weightedSum(sharesOf(wanted.weights), subscoresOf(match, offer, wanted, estimateOf(offer)))
}

function subscoresOf(match: number, offer: Offer, wanted: NegotiationRequest, estimate: Estimate): Subscores {
  return {
    skillMatch: match,
    ioCompatibility: ioCompatibility(offer.skills, wanted),
    performance: performanceScore(estimate.latencyMs, wanted.maxLatencyMs, successOf(offer)),
    load: loadScore(offer),
    cost: costScore(offer.price?.amount, wanted.maxCostAmount),
  }
}

function refused(broken: string, offer: Offer, wanted: NegotiationRequest, estimate: Estimate): Negotiated {
  return {
    canHandle: false,
    score: 0,
    exactScore: 0,
    confidence: 1,
    brokenConstraint: broken,
    rejectionReason: broken,
    reasons: [broken, ...defaultsReason(wanted)],
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
