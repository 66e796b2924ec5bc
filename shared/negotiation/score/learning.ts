import type { Unit } from './profile.ts'
import { type Query, readQuery } from './query.ts'
import type { TrainingExample } from './training-example.ts'

/**
 * The features of a text that are stored for learning: stems and pairs of stems, sorted so that the original text
 * cannot be reconstructed from the features.
 */
export function trainingWords(text: string): Record<string, number> {
  const { features, common } = readQuery(text)
  return Object.fromEntries([...features, ...common].toSorted().map((feature) => [feature, 1]))
}

/** The summed training examples of one agent. */
export interface AgentFeedback {
  /** Weight of all examples, bounded per caller and decayed. */
  weight: number
  /** Maps each feature to the weight of the examples that contain it. Failures have negative weight. */
  features: ReadonlyMap<string, number>
  /**
   * Maps each feature to its weight in the agent's typical texts. Each example has length 1, and the agent's own
   * words count as the first example.
   */
  typical: ReadonlyMap<string, number>
}

/** Maximum total weight of one caller's examples for one agent. */
const callerWeightMax = 8
export const halfLifeMs = 90 * 24 * 3600 * 1000

/**
 * Sums the examples of one agent as of `now`. This function is pure.
 * @param own the unit of the agent as a whole, if known
 */
export function feedbackOf(examples: readonly TrainingExample[], now: number, own?: Unit): AgentFeedback {
  const ofCaller = new Map<string, number>()
  for (const example of examples) {
    ofCaller.set(example.caller, (ofCaller.get(example.caller) ?? 0) + weightOf(example, now))
  }
  let weight = 0
  const features = new Map<string, number>()
  const typical = new Map<string, number>()
  for (const example of examples) {
    const total = ofCaller.get(example.caller) ?? 0
    const counted = weightOf(example, now) * Math.min(1, callerWeightMax / (total || 1))
    weight += counted
    const signed = example.outcome < 0 ? -counted : counted
    const words = Object.keys(example.words)
    for (const feature of words) features.set(feature, (features.get(feature) ?? 0) + signed)
    addText(
      typical,
      words.map((feature) => [feature, shareOf(feature)]),
      signed,
    )
  }
  if (own !== undefined) addText(typical, [...own.impacts], ownExamples)
  return { weight, features, typical }
}

function addText(to: Map<string, number>, words: readonly (readonly [string, number])[], weight: number) {
  let squares = 0
  for (const [, value] of words) squares += value * value
  const scale = weight / Math.sqrt(squares || 1)
  for (const [word, value] of words) to.set(word, (to.get(word) ?? 0) + scale * value)
}

/** Weight of the agent's own words, measured in examples. */
const ownExamples = 1
/** Weights of word pairs and of related words, relative to the weight of a word. */
const pairShare = 0.49
const relatedShare = 0.8

export const isPair = (feature: string): boolean => feature.includes(' ')
const shareOf = (feature: string) => (isPair(feature) ? pairShare : 1)

/** The features of a text that are compared with typical texts: words, pairs and related words. */
export function featureSharesOf({ terms, features, common }: Query): ReadonlyMap<string, number> {
  const shares = new Map<string, number>()
  for (const { related } of terms) {
    for (const [word, share] of related) {
      shares.set(word, Math.max(shares.get(word) ?? 0, relatedShare * share))
    }
  }
  for (const feature of features) shares.set(feature, shareOf(feature))
  for (const stem of common) shares.set(stem, 1)
  return shares
}

const usualWeight = 0.96
const directionWeight = 0.37
/** Examples with this total weight count for half. */
const few = 0.1

/**
 * Evidence from the overall similarity between a text and the examples, as a fraction of the mass. The
 * exponents suppress the small similarity that any two texts have.
 * @param words cosine of the counted words, 0..1
 * @param direction cosine of the directions, 0..1
 * @param weight weight of the examples; a single example and old examples count less
 */
export const pastEvidence = (words: number, direction: number, weight: number): number =>
  (weight / (weight + few)) *
  (usualWeight * words * Math.sqrt(words) + directionWeight * direction * direction)

/** Examples with this total weight make up half of the knowledge about an agent. */
const halfKnown = 0.9

/** Fraction of the knowledge about an agent that comes from examples, 0..1. */
export const feedbackShareOf = (weight: number): number => weight / (weight + halfKnown)

/** How well a feature distinguishes examples. A feature that all examples contain gives 0. */
export const featureRarity = (share: number): number => Math.max(0, -Math.log(share))

function weightOf({ at, outcome }: TrainingExample, now: number): number {
  return Math.min(1, Math.abs(outcome)) * 2 ** (-Math.max(0, now - at) / halfLifeMs)
}

const smoothing = 42
const pairWeight = 0.3
const against = 0.5
const evidenceMax = 4.6

/**
 * Evidence from a feature for an agent: the logarithm of how much more frequent it is in the agent's examples
 * than in all examples, at least 0. The evidence is negative if the agent's examples with the feature are failures.
 * @param held weight of the agent's examples with the feature
 * @param own impact in the agent's own words, 0..1, which count as its first example
 * @param weight weight of all the agent's examples
 * @param share fraction of all examples that contain the feature
 */
export function featureEvidence(
  feature: string,
  { held, own, weight, share }: { held: number; own: number; weight: number; share: number },
): number {
  const scale = isPair(feature) ? pairWeight : 1
  if (held < 0) return -scale * against * Math.min(2, Math.log(1 - held * 2))
  const first = ownExamples * Math.min(1, 2 * own)
  const quotient = (held + first + smoothing * share) / (weight + first + smoothing) / share
  return quotient <= 1 ? 0 : scale * Math.min(evidenceMax, Math.log(quotient))
}
