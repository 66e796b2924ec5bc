import { brokenConstraint } from './constraints.ts'
import type { Offer, OfferedSkill } from './offer.ts'
import type { NegotiationRequest, Weights } from './request.ts'
import { type SkillMatch, skillMatches } from './skill-match.ts'
import { ioCompatibility, loadScore, performanceScore } from './sub-scores.ts'

export type Subscores = { [K in keyof Weights]: number }

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
  skillMatches: SkillMatch[]
  queueDepth: number
  estimatedLatencyMs?: number
  /** In whole units, as the agent says it. */
  estimatedCostAmount?: string
}

const noScores: Subscores = { skillMatch: 0, ioCompatibility: 0, performance: 0, load: 0, cost: 0 }

/** Scores the offer for the wanted task; pure. A broken hard constraint is score 0 and says which. */
export function negotiate(offer: Offer, wanted: NegotiationRequest): Negotiated {
  const estimate = estimatedLatency(offer.skills)
  const latency = estimate === undefined ? {} : { estimatedLatencyMs: estimate }
  const { queueDepth } = offer
  const broken = brokenConstraint(offer, wanted, estimate)
  if (broken !== undefined) {
    const none = {
      canHandle: false,
      score: 0,
      exactScore: 0,
      confidence: 1,
      subscores: noScores,
      skillMatches: [],
    }
    return {
      ...none,
      brokenConstraint: broken,
      rejectionReason: broken,
      reasons: [broken],
      queueDepth,
      ...latency,
    }
  }
  const matches = skillMatches(offer.skills, `${wanted.taskSummary}\n${wanted.taskDetails ?? ''}`)
  const subscores: Subscores = {
    skillMatch: matches[0]?.score ?? 0,
    ioCompatibility: ioCompatibility(offer.skills, wanted),
    performance: performanceScore(estimate, wanted.maxLatencyMs),
    load: loadScore(queueDepth),
    // Agents that charge arrive with payments; until then everything is free.
    cost: 1,
  }
  const exactScore = weighted(subscores, wanted.weights)
  const score = round(exactScore)
  const minScore = wanted.minScore ?? 0
  const canHandle = subscores.skillMatch > 0 && score >= minScore
  const reasons = reasonsOf(subscores, matches, queueDepth)
  const refusal =
    subscores.skillMatch > 0 ? `score ${score} is below min_score ${minScore}` : 'no skill matches the task'
  return {
    canHandle,
    score,
    exactScore,
    confidence: round(subscores.skillMatch),
    reasons,
    subscores,
    skillMatches: matches,
    queueDepth,
    ...(canHandle ? {} : { rejectionReason: refusal }),
    ...latency,
  }
}

/** Divided by their sum; all zero = equal. */
function weighted(subscores: Subscores, weights: Weights): number {
  const names = Object.keys(noScores) as (keyof Weights)[]
  const sum = names.reduce((total, name) => total + weights[name], 0)
  const weightOf = (name: keyof Weights) => (sum === 0 ? 1 / names.length : weights[name] / sum)
  return names.reduce((total, name) => total + weightOf(name) * subscores[name], 0)
}

function reasonsOf(subscores: Subscores, matches: SkillMatch[], queueDepth: number): string[] {
  const best = matches[0]
  const skill =
    best === undefined || best.score === 0
      ? 'no skill matches the task'
      : `skill ${best.skillId}: ${best.reasons.join(', ')}`
  const queue = queueDepth === 0 ? 'nothing waits' : `${queueDepth} tasks wait`
  return [skill, `input and output types fit ${Math.round(subscores.ioCompatibility * 100)} %`, queue]
}

function estimatedLatency(skills: readonly OfferedSkill[]): number | undefined {
  const declared = skills.flatMap((skill) => skill.performance.avgProcessingTimeMs ?? [])
  return declared.length === 0 ? undefined : Math.round(Math.min(...declared))
}

function round(value: number): number {
  return Math.round(value * 10_000) / 10_000
}
