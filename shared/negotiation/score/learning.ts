import type { Learned } from './knowledge.ts'
import { readQuery } from './query.ts'
import type { TrainingExample } from './training-example.ts'

/**
 * The words of a text that are stored for learning: its stems, without names and numbers, sorted so that the original text
 * cannot be reconstructed from them.
 */
export function trainingWords(text: string): Record<string, number> {
  const { features, common } = readQuery(text)
  const stems = [...features, ...common]
  return Object.fromEntries(stems.toSorted().map((stem) => [stem, 1]))
}

export const halfLifeMs = 90 * 24 * 3600 * 1000

/** The weight of an example, 0..1: its outcome, reduced by its age. */
export const weightOf = ({ at, outcome }: Pick<TrainingExample, 'at' | 'outcome'>, now: number): number =>
  Math.min(1, Math.abs(outcome)) * 2 ** (-Math.max(0, now - at) / halfLifeMs)

/** The similarity that any two requests have, which is no evidence. */
const usualWithMeaning = 0.2
const usualOfWords = 0.05
/** The weight of words next to meaning. */
const wordsShare = 0.6

/**
 * How similar a request and an example are, beyond what any two requests are.
 * @param words cosine of their words, weighted by rarity
 * @param meaning cosine of their sentence vectors, if both have one
 */
export const similarity = (words: number, meaning: number | undefined): number =>
  Math.max(0, meaning === undefined ? words - usualOfWords : meaning + wordsShare * words - usualWithMeaning)

/** The weights of the most similar examples. */
const ranks = [0.75, 0.25] as const
/** The most similar example counts at most this many times as much as the one that supports it. */
const supportedTimes = 8

/**
 * Evidence of the most similar examples with the same sign; 0 without an example that supports the first, so that nothing is learned
 * from one event.
 * @param first `similarity` times `weightOf` of the most similar example
 * @param second that of the most similar one of another context, and of another caller if several callers are required
 */
export const supportedEvidence = (first: number, second: number): number =>
  second <= 0 ? 0 : ranks[0] * Math.min(first, supportedTimes * second) + ranks[1] * second

/** Number of contexts with good examples from which an agent's score can rise: one, and one that supports it. */
export const contextsMin = 2

/** Weight of past work next to the agent's own texts, with and without sentence vectors. */
const learnedWeight = { meaning: 1.4, words: 1 }

/** Past work never counts more than this. */
const learnedMax = 1

export const learnedEvidence = (good: number, bad: number, known: number, hasMeaning: boolean): number => {
  const sum = (hasMeaning ? learnedWeight.meaning : learnedWeight.words) * known * (good - bad)
  return Math.max(-learnedMax, Math.min(learnedMax, sum))
}

/** Fraction of the knowledge about an agent that comes from examples of so many contexts and callers, 0..1. */
export function knownShare(contexts: number, callers: number): number {
  const independent = Math.min(contexts, 3 * callers)
  return independent / (independent + 1)
}

/** The fraction of the maximum evidence that an agent without examples would be expected to have, at most as a multiple of its own. */
const expectedShare = 0.85
const expectedTimes = 2

/**
 * The evidence of an agent's own texts together with past work. An agent with few examples gets the evidence that its texts lead to expect, so that
 * agents with examples do not displace it. Increases with `own`.
 */
export function withLearned(
  own: number,
  { evidence, known, most, bestOwn }: Omit<Learned, 'similar'>,
): number {
  const likely = Math.min(expectedShare * most, expectedTimes * Math.max(0, own))
  const expected = (1 - known) * Math.max(0, likely - Math.max(0, bestOwn - own))
  return own + (evidence < 0 ? evidence : Math.max(evidence, expected))
}
