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
const usualWithMeaning = 0.1
const usualOfWords = 0.05
/** The weight of words next to meaning. */
const wordsShare = 0.6
/** The fraction of an example's nearness to its agent's own texts that is no evidence, because these texts are compared anyway. */
const ownTextsShare = 0.5

/** How near examples usually are to their agent's own texts. */
export const usualNearness = 0.4

/**
 * How similar a request and an example are, beyond what any two requests are. An example that is far from its agent's own texts says
 * more than one that repeats them.
 * @param words cosine of their words, weighted by rarity
 * @param meaning cosine of their sentence vectors
 * @param nearOwn how near the example is to the texts of its agent (`nearness`)
 */
export const similarity = (words: number, meaning: number, nearOwn: number): number =>
  Math.max(0, meaning + wordsShare * words - Math.max(usualWithMeaning, ownTextsShare * nearOwn))

/** The same if the request or the example has no sentence vector. */
export const similarityOfWords = (words: number): number => Math.max(0, words - usualOfWords)

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

/** An example that is at least this similar supports others. */
export const supportMin = 0.3
/** An example that is at least this similar is nearly the same request. */
export const sameTextMin = 0.7
const fewExamples = 600
const supportersMost = 4

/**
 * The number of similar examples that must support each other. It falls with the number of all examples, because few examples do not
 * show which requests are alike by chance.
 */
export const supportersNeeded = (examples: number): number =>
  2 + Math.ceil((supportersMost - 2) * Math.max(0, 1 - examples / fewExamples))

/** How far examples count, 0..1, where so many are needed to support each other. */
export const maturity = (needed: number): number => (supportersMost - needed) / (supportersMost - 2)

/** Number of callers whose repeated use of an agent must agree, since no caller has judged the results. */
export const usersMin = 3
/** How far repeated use is trusted next to ratings. */
export const usedShare = 0.5

/** Number of contexts with good examples from which an agent's score can rise while the gateway has few examples. */
export const contextsMin = 4

/** How far failures are trusted next to ratings, whose trust depends on their number (`trustIn`). */
export const failedShare = 0.5

/** Past work never counts more than this. */
const learnedMax = 1

/** @param support of good examples less that of bad ones, each weighted by the trust in it */
export const learnedEvidence = (support: number): number =>
  Math.max(-learnedMax, Math.min(learnedMax, support))

/** The independent examples among those of so many contexts and callers. */
export const independentExamples = (contexts: number, callers: number): number =>
  Math.min(contexts, 3 * callers)

/** Fraction of the evidence that so many callers with similar examples give while there are few examples, 0..1: two may be one person. */
export const trustInCallers = (callers: number): number => callers ** 2 / (callers ** 2 + 12)

/** Fraction of the evidence that so many independent examples give, 0..1. */
export const trustIn = (independent: number): number => independent / (independent + 1)

/** An example that is at least this similar to a request counts as one about the same kind of request. */
const sameKind = 0.3
/** With this number of independent examples of any kind, the work of the agent is half known. */
const halfKnown = 5

/**
 * Fraction of the knowledge about what an agent does with a request that comes from examples, 0..1. An agent with examples about other
 * requests only is as unknown for this one as an agent without examples.
 * @param independent number of independent examples
 * @param similarities of its examples with the request, summed up, each at most `sameKind`
 */
export function knownShare(independent: number, similarities: number): number {
  const near = similarities / sameKind
  return Math.max(independent / (independent + halfKnown), near / (near + 1))
}

/** The contribution of an example to the sum of `knownShare`. */
export const nearShare = (value: number): number => Math.min(sameKind, value)

/** The fraction of the maximum evidence that an agent without examples would be expected to have, at most as a multiple of its own. */
const expectedShare = 0.85
const expectedTimes = 2

const likely = (own: number, most: number): number =>
  Math.min(expectedShare * most, expectedTimes * Math.max(0, own))

/**
 * The evidence that examples add in general for a query: it is expected of the best agent without examples, and says nothing about
 * whether that agent can do the task.
 */
export const expectedEvidence = ({ most, bestOwn }: Pick<Learned, 'most' | 'bestOwn'>): number =>
  likely(bestOwn, most)

/**
 * The evidence of an agent's own texts together with past work. An agent with few examples gets the evidence that its texts lead to expect, so that
 * agents with examples do not displace it. Increases with `own`.
 */
export function withLearned(
  own: number,
  { evidence, known, most, bestOwn }: Omit<Learned, 'similar'>,
): number {
  const expected = (1 - known) * Math.max(0, likely(own, most) - Math.max(0, bestOwn - own))
  return own + (evidence < 0 ? evidence : Math.max(evidence, expected))
}
