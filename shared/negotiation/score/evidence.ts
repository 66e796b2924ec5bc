import { likeness } from '../words/meaning.ts'
import type { Knowledge } from './knowledge.ts'
import { defaultRarity } from './knowledge.ts'
import type { Unit } from './profile.ts'
import { type Query, type Term, termsMax } from './query.ts'

/** Past work counts at most as much as all words of the text together. */
const learnedWeight = 0.9
/** What the directions of two texts say, as a share of all that words could say. */
export const meaningWeight = 0.1
const nearnessWeight = 1

/** Where half of the way to 1 is, as a share of `mass` to the power of `massPower`. */
const half = 0.1
const massPower = 0.8

/** Read last: one place, as in `query.ts`. */
let last: { query: Query; rarityOf: Knowledge['rarityOf']; mass: number } | undefined

/** All that the words of the text could say; what matches is measured against it. */
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

/** For each word of the text what answers it best. One place for all units: a ranking asks of hundreds. */
const best = new Float64Array(termsMax)

/** What the unit's words say for the text: each word of the text by the best that answers it. */
export function wordEvidence({ impacts }: Unit, { terms, answers }: Query, knowledge: Knowledge): number {
  best.fill(0, 0, terms.length)
  // No iterators: each would leave a pair for each entry behind.
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
  for (let at = 0; at < terms.length; at += 1) sum += (terms[at] as Term).weight * (best[at] as number)
  return sum
}

function answer(found: readonly (readonly [number, number])[], value: number): void {
  for (let at = 0; at < found.length; at += 1) {
    const one = found[at] as readonly [number, number]
    const said = one[1] * value
    if (said > (best[one[0]] as number)) best[one[0]] = said
  }
}

/** What past work says for the text (or against it), bounded by what its words could say. */
export function learnedEvidence(query: Query, knowledge: Knowledge, mass: number): number {
  const { learned, past, feedbackWeight } = knowledge
  let sum = 0
  if (learned !== undefined) for (const feature of query.features) sum += learned(feature)
  const said = learnedWeight * sum + mass * (past?.(query) ?? 0)
  if (said <= 0) return Math.max(-mass / 4, said)
  return Math.min(mass, said) * (feedbackWeight?.(query, mass) ?? 1)
}

/** At least what examples say: `sum` is what features say for the text, none of them against it. */
export const feedbackMax = (sum: number, past: number, mass: number): number =>
  Math.min(mass, learnedWeight * sum + mass * past)

/** What examples would add to an agent's own words, had it any, as a multiple of these. */
const expectedShare = 2
/** What own words lose where examples tell. */
const feedbackOverlap = 0.43

/**
 * What an agent's own words say beside examples. One without examples would be crowded out by those that have some: it is
 * given what examples usually add to such words, never more than the examples of any agent say for this text.
 * @param own what its own words say
 * @param known how much of what is known about it its examples tell, 0..1
 * @param most the most that examples say for the text
 */
export const withFeedback = (own: number, known: number, most: number): number =>
  own * (1 - feedbackOverlap * known) + (1 - known) * Math.min(expectedShare * own, most)

export const ownEvidence = (
  own: number,
  query: Query,
  { known, feedbackMost }: Knowledge,
  mass: number,
): number => withFeedback(own, known ?? 0, feedbackMost?.(query, mass) ?? 0)

/** What the text as a whole has in common with the unit as a whole. It only adds to what `words` say. */
export function meaningEvidence({ meaning }: Unit, query: Query, mass: number, words: number): number {
  if (words === 0) return 0
  return boundedByWords(meaningWeight * mass * likeness(meaning, query.meaning), words)
}

/** Whole texts count at most twice as much as their words: where no word speaks for an agent, nothing does. */
export const boundedByWords = (direction: number, words: number): number => Math.min(direction, 2 * words)

/** What nearness in meaning says: below half it says nothing. */
export function nearnessEvidence(nearness: number | undefined, mass: number): number {
  return nearness === undefined ? 0 : nearnessWeight * mass * Math.max(0, 2 * nearness - 1)
}

/** Evidence as a skill match, 0..1. It grows with the evidence, so it never changes the order of agents. */
export function matchOf(evidence: number, mass: number): number {
  return evidence <= 0 || mass <= 0 ? 0 : evidence / (evidence + half * mass ** massPower)
}

/** The least evidence whose match is at least `match`, a little less for the rounding of numbers. */
export function evidenceFor(match: number, mass: number): number {
  if (match <= 0) return 0
  if (match >= 1) return Number.POSITIVE_INFINITY
  return (match / (1 - match)) * half * mass ** massPower * (1 - 1e-9)
}

export const rarity = (stem: string, { rarityOf }: Knowledge): number => rarityOf?.(stem) ?? defaultRarity
