import type { Taught } from '../score/learning.ts'
import type { Unit } from '../score/profile.ts'
import type { TrainingExample } from '../score/training-example.ts'
import type { Meaning } from '../words/meaning.ts'

/** An agent with lessons. */
export interface Pupil {
  agent: string
  /** Its place in what is summed up for a text. */
  number: number
  /** By context: a later lesson of the same context takes the place of the earlier. */
  lessons: Map<string, TrainingExample>
  /** The agent as a whole by its own words, where it is known. */
  own: Unit | undefined
  /** Enough went well, for enough callers, that its lessons speak for it. Until then they only speak against it. */
  lifted: boolean
  taught: Taught
  asOf: number
  /** Length and direction of its usual texts by the rarity of words, and how much was learned by all when they were read. */
  length: number
  meaning: Meaning | undefined
  readAt: number
}

export const nothing: Taught = { weight: 0, features: new Map(), usual: new Map() }

export const newPupil = (agent: string, number: number, own: Unit | undefined): Pupil => ({
  agent,
  number,
  lessons: new Map(),
  own,
  lifted: false,
  taught: nothing,
  asOf: 0,
  length: 0,
  meaning: undefined,
  readAt: 0,
})

/** Takes out the oldest lesson of the caller who gave the most: nobody pushes out what others taught. */
export function dropOldestOfMost(lessons: Map<string, TrainingExample>): TrainingExample {
  const counts = new Map<string, number>()
  for (const { caller } of lessons.values()) counts.set(caller, (counts.get(caller) ?? 0) + 1)
  const most = Math.max(...counts.values())
  for (const lesson of lessons.values()) {
    if (counts.get(lesson.caller) !== most) continue
    lessons.delete(lesson.context)
    return lesson
  }
  throw new Error('there are no lessons')
}
