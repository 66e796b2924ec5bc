import type { Lesson } from './lesson.ts'
import { readQuery } from './query.ts'

/** What is kept of a text that an agent worked on: its stems and pairs of them, sorted, so that no text can be read from it. */
export function lessonWords(text: string): Record<string, number> {
  return Object.fromEntries(
    readQuery(text)
      .features.toSorted()
      .map((feature) => [feature, 1]),
  )
}

/** One agent's part in what was learned. */
export interface Taught {
  /** Weight of all its lessons, bounded by caller and decayed. */
  weight: number
  /** Feature → weight of the lessons that hold it; negative: they went badly. */
  features: ReadonlyMap<string, number>
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
  for (const lesson of lessons) {
    const total = ofCaller.get(lesson.caller) ?? 0
    const own = weightOf(lesson, now) * Math.min(1, callerWeightMax / (total || 1))
    weight += own
    const signed = lesson.outcome < 0 ? -own : own
    for (const feature of Object.keys(lesson.words)) {
      features.set(feature, (features.get(feature) ?? 0) + signed)
    }
  }
  return { weight, features }
}

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
