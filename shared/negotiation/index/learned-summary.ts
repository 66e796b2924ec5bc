import { contextsMin, usersMin } from '../score/learning.ts'
import { type TrainingExample, wordsKey } from '../score/training-example.ts'
import { type LearnedWords, learnedWords } from './learned-words.ts'

/** How many examples are positive and negative. Examples with the outcome 0 are neither. */
export interface OutcomeCounts {
  examples: number
  positive: number
  negative: number
}

/** The examples of one caller. */
export interface LearnedCaller extends OutcomeCounts {
  /** Key of the caller. */
  caller: string
  /** Time of the oldest example in milliseconds since 1970. */
  since: number
}

/** The sums of the training examples of one agent. */
export interface LearnedSummary extends OutcomeCounts {
  /** Time of the oldest example in milliseconds since 1970. */
  since: number | undefined
  /** Callers with the most examples first. */
  callers: LearnedCaller[]
  /** Whether there are enough examples to raise the agent's score for requests that are similar to them. */
  raisesScore: boolean
  /** How many rated positive examples with different texts, and callers with such examples, are missing until they do. */
  missing: { examples: number; callers: number }
  words: LearnedWords
}

export interface SummaryOptions {
  /** Number of callers with positive examples needed to raise an agent's score (`FeedbackModelOptions`). */
  callersMin: number
  /** Texts of the agent, from which stems get their readable form. */
  texts?: readonly string[]
  /** Maximum number of words of each kind. Default 12. */
  wordsMax?: number
}

/** Sums up the examples of one agent. This function is pure. */
export function summaryOf(
  examples: readonly TrainingExample[],
  { callersMin, texts = [], wordsMax = 12 }: SummaryOptions,
): LearnedSummary {
  const counts = countsOf(examples)
  const ofCaller = Map.groupBy(examples, ({ caller }) => caller)
  const callers = [...ofCaller].map(([caller, own]) => ({
    caller,
    ...countsOf(own),
    since: oldest(own) ?? 0,
  }))
  const good = examples.filter(({ outcome }) => outcome > 0)
  const missing = missingFrom(
    good.filter(({ used }) => used !== true),
    callersMin,
  )
  const missingUses = missingFrom(
    good.filter(({ used }) => used === true),
    usersMin,
  )
  return {
    ...counts,
    since: oldest(examples),
    callers: callers.toSorted((a, b) => b.examples - a.examples || (a.caller < b.caller ? -1 : 1)),
    raisesScore: [missing, missingUses].some((needed) => needed.examples === 0 && needed.callers === 0),
    missing,
    words: learnedWords(examples, texts, wordsMax),
  }
}

/** A text counts once, however often it was sent. */
function missingFrom(good: readonly TrainingExample[], callersMin: number) {
  const texts = new Set(good.map(({ words }) => wordsKey(words)))
  const callers = new Set(good.map(({ caller }) => caller))
  return {
    examples: Math.max(0, contextsMin - texts.size),
    callers: Math.max(0, callersMin - callers.size),
  }
}

function countsOf(examples: readonly TrainingExample[]): OutcomeCounts {
  return {
    examples: examples.length,
    positive: examples.filter(({ outcome }) => outcome > 0).length,
    negative: examples.filter(({ outcome }) => outcome < 0).length,
  }
}

function oldest(examples: readonly TrainingExample[]): number | undefined {
  return examples.reduce<number | undefined>((least, { at }) => Math.min(least ?? at, at), undefined)
}
