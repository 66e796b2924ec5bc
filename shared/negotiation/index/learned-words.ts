import type { TrainingExample } from '../score/training-example.ts'
import { backgroundRarity } from '../words/english.ts'
import { isStopWord, stemOf, wordsIn } from '../words/split.ts'

/** A word that occurs in examples. */
export interface LearnedWord {
  /** The word as the agent's own texts spell it, else its stem. */
  word: string
  /** Number of positive examples with the word less that of negative ones, weighted by their outcomes. */
  weight: number
}

/** The words of mostly positive examples and of mostly negative ones, the most significant first. */
export interface LearnedWords {
  positive: LearnedWord[]
  negative: LearnedWord[]
}

const ownWordsMax = 2000

/** Leaves out pairs of stems, which contain a space, stop words, single letters, and numbers, which may be personal. */
const isShown = (stem: string) => /\p{L}{2}|\p{Lo}/u.test(stem) && !stem.includes(' ') && !isStopWord(stem)

/**
 * The words of the examples. A word is more significant if more examples have it, and if it is rarer in English.
 * @param texts texts of the agent, from which stems get their readable form
 * @param max maximum number of words of each kind
 */
export function learnedWords(
  examples: readonly TrainingExample[],
  texts: readonly string[],
  max: number,
): LearnedWords {
  const weights = new Map<string, number>()
  for (const { words, outcome } of examples)
    for (const stem of Object.keys(words))
      if (isShown(stem)) weights.set(stem, (weights.get(stem) ?? 0) + outcome)
  const spelled = spellings(texts)
  const found = [...weights].map(([stem, weight]) => ({
    word: spelled.get(stem) ?? stem,
    weight: Math.round(weight * 100) / 100,
    significance: weight * backgroundRarity(stem),
  }))
  const first = (sign: 1 | -1) =>
    found
      .filter(({ weight }) => weight * sign > 0)
      .toSorted((a, b) => sign * (b.significance - a.significance) || (a.word < b.word ? -1 : 1))
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
