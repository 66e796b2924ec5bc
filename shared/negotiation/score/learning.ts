import type { Unit } from './profile.ts'
import { type Query, readQuery } from './query.ts'
import type { TrainingExample } from './training-example.ts'

/** What is kept of a text that an agent worked on: its stems and pairs of them, sorted, so that no text can be read from it. */
export function trainingWords(text: string): Record<string, number> {
  const { features, common } = readQuery(text)
  return Object.fromEntries([...features, ...common].toSorted().map((feature) => [feature, 1]))
}

/** One agent's part in what was learned. */
export interface AgentFeedback {
  /** Weight of all its examples, bounded by caller and decayed. */
  weight: number
  /** Feature → weight of the examples that hold it; negative: they went badly. */
  features: ReadonlyMap<string, number>
  /** Feature → how much the texts of its work are about it: every example of length 1, and the agent's own words as its first. */
  typical: ReadonlyMap<string, number>
}

/** The examples of one caller about one agent count at most as much as so many. */
const callerWeightMax = 8
export const halfLifeMs = 90 * 24 * 3600 * 1000

/**
 * Adds up examples about one agent as of `now`; pure.
 * @param own the agent as a whole by its own words, where it is known
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

/** What the agent says of itself counts as so many examples. */
const ownExamples = 1
/** How much a pair of words, and a word that is merely related, count beside a word itself. */
const pairShare = 0.49
const relatedShare = 0.8

export const isPair = (feature: string): boolean => feature.includes(' ')
const shareOf = (feature: string) => (isPair(feature) ? pairShare : 1)

/** What of a text is compared with the typical texts of an agent: its words, pairs of them, and words of like meaning. */
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
/** Lessons that weigh so much together say half of what many say. */
const few = 0.1

/**
 * How much it says that a text is like the examples as a whole, as a share of all that its words could say. Powers, because
 * a little likeness is that of any two texts: it must not lift the match of a text that nobody serves.
 * @param words cosine of the counted words, 0..1
 * @param direction cosine of the directions, 0..1
 * @param weight weight of the examples: a single one, or old ones, say less
 */
export const pastEvidence = (words: number, direction: number, weight: number): number =>
  (weight / (weight + few)) *
  (usualWeight * words * Math.sqrt(words) + directionWeight * direction * direction)

/** Lessons of this weight tell half of what there is to know about an agent. */
const halfKnown = 0.9

/** How much of what is known about an agent its examples tell, 0..1. */
export const feedbackShareOf = (weight: number): number => weight / (weight + halfKnown)

/** How much a word tells examples apart, 0 for one that is in all of them. */
export const featureRarity = (share: number): number => Math.max(0, -Math.log(share))

function weightOf({ at, outcome }: TrainingExample, now: number): number {
  return Math.min(1, Math.abs(outcome)) * 2 ** (-Math.max(0, now - at) / halfLifeMs)
}

const smoothing = 42
const pairWeight = 0.3
const against = 0.5
const evidenceMax = 4.6

/**
 * How much a feature speaks for an agent: how much more of its examples hold it than examples in general do (logarithm of
 * the quotient, never below 0 for what is merely rare); against it where what it did went badly.
 * @param held weight of the agent's examples with the feature
 * @param own how much its own words are about it, 0..1: they are its first example
 * @param weight weight of all its examples
 * @param share share of all examples that hold the feature
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
