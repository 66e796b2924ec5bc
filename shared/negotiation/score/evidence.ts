import { likeness } from '../words/meaning.ts'
import type { Knowledge } from './knowledge.ts'
import { defaultRarity } from './knowledge.ts'
import type { Unit } from './profile.ts'
import { type Query, type Term, termsMax } from './query.ts'

/** Past work never counts more than all words of the text together. */
const learnedWeight = 0.9
/** Weight of the overall similarity of two texts, as a fraction of the mass. */
export const meaningWeight = 0.1
const nearnessWeight = 1

/** The evidence that gives a match of one half, as a multiple of `mass ** massPower`. */
const half = 0.1
const massPower = 0.8

/** The last result (see `queryOf`). */
let last: { query: Query; rarityOf: Knowledge['rarityOf']; mass: number } | undefined

/** The maximum word evidence for the query, to which matches are relative. */
export function massOf(query: Query, knowledge: Knowledge): number {
  const { rarityOf } = knowledge
  if (last?.query === query && last.rarityOf === rarityOf) return last.mass
  const mass = readMass(query, knowledge)
  last = { query, rarityOf, mass }
  return mass
}

function readMass({ terms }: Query, knowledge: Knowledge): number {
  let mass = 0
  for (const { stem, weight } of terms) mass += weight * rarity(stem, knowledge)
  return mass
}

/** The best match of each query word. Allocated once, because a ranking evaluates hundreds of units. */
const best = new Float64Array(termsMax)

/** A unit's word evidence, in which each query word counts by its best match. */
export function wordEvidence({ impacts }: Unit, { terms, answers }: Query, knowledge: Knowledge): number {
  best.fill(0, 0, terms.length)
  // Uses `forEach`, because an iterator allocates a pair for each entry.
  if (impacts.size < answers.size) {
    impacts.forEach((impact, stem) => {
      const found = answers.get(stem)
      if (found !== undefined) answer(found, impact * rarity(stem, knowledge))
    })
  } else {
    answers.forEach((found, stem) => {
      const impact = impacts.get(stem)
      if (impact !== undefined) answer(found, impact * rarity(stem, knowledge))
    })
  }
  let sum = 0
  for (let at = 0; at < terms.length; at += 1) sum += (terms[at] as Term).weight * (best[at] ?? 0)
  return sum
}

function answer(found: readonly (readonly [number, number])[], value: number): void {
  for (let at = 0; at < found.length; at += 1) {
    const one = found[at] as readonly [number, number]
    const said = one[1] * value
    if (said > (best[one[0]] as number)) best[one[0]] = said
  }
}

/** Evidence from past work for or against the agent, bounded by the mass. */
export function learnedEvidence(query: Query, knowledge: Knowledge, mass: number): number {
  const { learned, past, feedbackWeight } = knowledge
  let sum = 0
  if (learned !== undefined) for (const feature of query.features) sum += learned(feature)
  const said = learnedWeight * sum + mass * (past?.(query) ?? 0)
  if (said <= 0) return Math.max(-mass / 4, said)
  return Math.min(mass, said) * (feedbackWeight?.(query, mass) ?? 1)
}

/** Upper bound of the feedback. `sum` is the evidence of the features, none of which is negative. */
export const feedbackMax = (sum: number, past: number, mass: number): number =>
  Math.min(mass, learnedWeight * sum + mass * past)

/** The feedback that an agent without examples is expected to have, as a multiple of its word evidence. */
const expectedShare = 2
/** The fraction of own-word evidence that examples make redundant. */
const feedbackOverlap = 0.43

/**
 * Evidence from an agent's own words, adjusted for its examples. An agent without examples gets the feedback
 * that is usual for such words, up to the maximum feedback of any agent for this text, so that agents with
 * examples do not displace it.
 * @param own evidence from the words in its offer
 * @param known fraction of the knowledge about the agent that comes from examples, 0..1
 * @param most the maximum feedback of any agent for the text
 */
export const withFeedback = (own: number, known: number, most: number): number =>
  own * (1 - feedbackOverlap * known) + (1 - known) * Math.min(expectedShare * own, most)

export const ownEvidence = (
  own: number,
  query: Query,
  { known, feedbackMost }: Knowledge,
  mass: number,
): number => withFeedback(own, known ?? 0, feedbackMost?.(query, mass) ?? 0)

/** Overall similarity of the query and the unit. It only adds to word evidence. */
export function meaningEvidence({ meaning }: Unit, query: Query, mass: number, words: number): number {
  if (words === 0) return 0
  return boundedByWords(meaningWeight * mass * likeness(meaning, query.meaning), words)
}

/** Similarity counts for at most twice the word evidence, so without a common word it counts for nothing. */
export const boundedByWords = (direction: number, words: number): number => Math.min(direction, 2 * words)

/** Evidence from an embedding. A cosine below one half counts for nothing. */
export function nearnessEvidence(nearness: number | undefined, mass: number): number {
  return nearness === undefined ? 0 : nearnessWeight * mass * Math.max(0, 2 * nearness - 1)
}

/** Maps evidence to a skill match, 0..1. The function is strictly increasing, so it keeps the order of agents. */
export function matchOf(evidence: number, mass: number): number {
  return evidence <= 0 || mass <= 0 ? 0 : evidence / (evidence + half * mass ** massPower)
}

/** The inverse of `matchOf`, slightly lower to allow for rounding. */
export function evidenceFor(match: number, mass: number): number {
  if (match <= 0) return 0
  if (match >= 1) return Number.POSITIVE_INFINITY
  return (match / (1 - match)) * half * mass ** massPower * (1 - 1e-9)
}

export const rarity = (stem: string, { rarityOf }: Knowledge): number => rarityOf?.(stem) ?? defaultRarity
