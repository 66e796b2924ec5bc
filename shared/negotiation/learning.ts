import type { Lesson } from './lesson.ts'
import { readQuery } from './query.ts'
import { dimensions, inBytes, type Meaning, meaningOf } from './words/meaning.ts'
import { isStopWord } from './words/split.ts'

/** What is kept of a text that an agent worked on: its stems and pairs of them, sorted, so that no text can be read from it. */
export function lessonWords(text: string): Record<string, number> {
  const { features, common } = readQuery(text)
  return Object.fromEntries([...features, ...common].toSorted().map((feature) => [feature, 1]))
}

/** One agent's part in what was learned. */
export interface Taught {
  /** Weight of all its lessons, bounded by caller and decayed. */
  weight: number
  /** Feature → weight of the lessons that hold it; negative: they went badly. */
  features: ReadonlyMap<string, number>
  /** The same of single words, each lesson of length 1 whatever its number of words. */
  usual: ReadonlyMap<string, number>
  /** The direction of those lessons together. */
  meaning: Meaning | undefined
}

/** The lessons of one caller about one agent count at most as much as so many. */
const callerWeightMax = 8
export const halfLifeMs = 90 * 24 * 3600 * 1000

/** Adds up lessons about one agent as of `now`; pure. */
export function taughtBy(lessons: readonly Lesson[], now: number): Taught {
  const ofCaller = new Map<string, number>()
  for (const lesson of lessons) {
    ofCaller.set(lesson.caller, (ofCaller.get(lesson.caller) ?? 0) + weightOf(lesson, now))
  }
  let weight = 0
  const features = new Map<string, number>()
  const usual = new Map<string, number>()
  const direction = new Float64Array(dimensions)
  for (const lesson of lessons) {
    const total = ofCaller.get(lesson.caller) ?? 0
    const own = weightOf(lesson, now) * Math.min(1, callerWeightMax / (total || 1))
    weight += own
    const signed = lesson.outcome < 0 ? -own : own
    for (const feature of Object.keys(lesson.words)) {
      features.set(feature, (features.get(feature) ?? 0) + signed)
    }
    addWhole(lesson, signed, usual, direction)
  }
  return { weight, features, usual, meaning: inBytes(direction) }
}

function addWhole(
  { words }: Lesson,
  weight: number,
  usual: Map<string, number>,
  direction: Float64Array,
): void {
  const single = Object.keys(words).filter((feature) => !feature.includes(' '))
  const share = weight / Math.sqrt(single.length || 1)
  for (const stem of single) usual.set(stem, (usual.get(stem) ?? 0) + share)
  const meaning = meaningOf(single.filter((stem) => !isStopWord(stem)))
  if (meaning === undefined) return
  for (let at = 0; at < dimensions; at += 1) {
    direction[at] = (direction[at] as number) + (weight * (meaning.vector[at] as number)) / meaning.length
  }
}

const usualWeight = 0.8
const directionWeight = 0.2
/** Lessons that weigh so much together say half of what many say. */
const few = 0.1

/**
 * How much it says that a text is like the lessons as a whole, as a share of all that its words could say. Powers, because
 * a little likeness is that of any two texts: it must not lift the match of a text that nobody serves.
 * @param words cosine of the counted words, 0..1
 * @param direction cosine of the directions, 0..1
 * @param weight weight of the lessons: a single one, or old ones, say less
 */
export const pastEvidence = (words: number, direction: number, weight: number): number =>
  (weight / (weight + few)) * (usualWeight * words ** 2 + directionWeight * direction ** 3)

/** How much a word tells lessons apart, 0 for one that is in all of them. */
export const lessonRarity = (share: number): number => Math.max(0, -Math.log(share))

function weightOf({ at, outcome }: Lesson, now: number): number {
  return Math.min(1, Math.abs(outcome)) * 2 ** (-Math.max(0, now - at) / halfLifeMs)
}

const smoothing = 12
const pairWeight = 0.3
const against = 0.5
const evidenceMax = 8

/**
 * How much a feature speaks for an agent: how much more of its lessons hold it than lessons in general do (logarithm of
 * the quotient, never below 0 for what is merely rare); against it where what it did went badly.
 * @param held weight of the agent's lessons with the feature
 * @param weight weight of all its lessons
 * @param share share of all lessons that hold the feature
 */
export function featureEvidence(feature: string, held: number, weight: number, share: number): number {
  const scale = feature.includes(' ') ? pairWeight : 1
  if (held === 0) return 0
  if (held < 0) return -scale * against * Math.min(2, Math.log(1 - held * 2))
  const quotient = (held + smoothing * share) / (weight + smoothing) / share
  return quotient <= 1 ? 0 : scale * Math.min(evidenceMax, Math.log(quotient))
}
