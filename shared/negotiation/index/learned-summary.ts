import type { TrainingExample } from '../score/training-example.ts'
import { backgroundRarity } from '../words/english.ts'
import { isStopWord, stemOf, wordsIn } from '../words/split.ts'
import { contextsMin, isBoosted } from './agent-model.ts'

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

/** A word that occurs in examples. */
export interface LearnedWord {
  /** The word as the agent's own texts spell it, else its stem. */
  word: string
  /** Number of positive examples with the word less that of negative ones, weighted by their outcomes. */
  weight: number
}

/** What the training examples of one agent say. */
export interface LearnedSummary extends OutcomeCounts {
  /** Time of the oldest example in milliseconds since 1970. */
  since: number | undefined
  /** Callers with the most examples first. */
  callers: LearnedCaller[]
  /** Whether the examples raise the agent's score. Negative examples lower it in any case. */
  raisesScore: boolean
  /** What is missing until they do: positive examples, and callers with positive examples. */
  missing: { examples: number; callers: number }
  /** The words of mostly positive examples and of mostly negative ones, the most telling first. */
  words: { positive: LearnedWord[]; negative: LearnedWord[] }
}

export interface SummaryOptions {
  /** Number of callers with positive examples needed to raise an agent's score (`FeedbackModelOptions`). */
  callersMin: number
  /** Texts of the agent, from which stems get their readable form. */
  texts?: readonly string[]
  /** Maximum number of words of each kind. Default 12. */
  wordsMax?: number
}

const ownWordsMax = 2000

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
  const supporters = callers.filter(({ positive }) => positive > 0).length
  return {
    ...counts,
    since: oldest(examples),
    callers: callers.toSorted((a, b) => b.examples - a.examples || (a.caller < b.caller ? -1 : 1)),
    raisesScore: isBoosted(examples, callersMin),
    missing: {
      examples: Math.max(0, contextsMin - counts.positive),
      callers: Math.max(0, callersMin - supporters),
    },
    words: tellingWords(examples, texts, wordsMax),
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

/** A word tells more if more examples have it, and if it is rarer in English. */
function tellingWords(
  examples: readonly TrainingExample[],
  texts: readonly string[],
  max: number,
): LearnedSummary['words'] {
  const weights = new Map<string, number>()
  // A feature with a space is a pair of stems.
  for (const { words, outcome } of examples)
    for (const stem of Object.keys(words))
      if (!stem.includes(' ') && !isStopWord(stem)) weights.set(stem, (weights.get(stem) ?? 0) + outcome)
  const spelled = spellings(texts)
  const found = [...weights].map(([stem, weight]) => ({
    word: spelled.get(stem) ?? stem,
    weight: Math.round(weight * 100) / 100,
    telling: weight * backgroundRarity(stem),
  }))
  const first = (sign: 1 | -1) =>
    found
      .filter(({ weight }) => weight * sign > 0)
      .toSorted((a, b) => sign * (b.telling - a.telling) || (a.word < b.word ? -1 : 1))
      .slice(0, max)
      .map(({ word, weight }) => ({ word, weight }))
  return { positive: first(1), negative: first(-1) }
}

/** Maps each stem of the texts to the shortest word with this stem. */
function spellings(texts: readonly string[]): Map<string, string> {
  const spelled = new Map<string, string>()
  for (const word of wordsIn(texts.join('\n'), ownWordsMax)) {
    const stem = stemOf(word)
    const known = spelled.get(stem)
    if (known === undefined || word.length < known.length) spelled.set(stem, word)
  }
  return spelled
}
