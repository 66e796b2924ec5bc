import { backgroundRarity, isEnglish } from './english.ts'
import { bitOf, englishBit, functionBits, type Language } from './function-words.ts'
import { withoutIdentifiers } from './identifiers.ts'
import { lexiconOf } from './lexicon.ts'
import { stemOf } from './split.ts'
import { foreignWord } from './word-forms.ts'

/** The part of a text by which its language is recognised. */
const charsMax = 1000
const wordsMax = 150
const latin = ['de', 'fr', 'es'] as const
const arabic = /\p{Script=Arabic}/gu
const kana = /[\p{Script=Hiragana}\p{Script=Katakana}]/gu
const han = /\p{Script=Han}/gu
/** Roughly the letters of a word in scripts without spaces. */
const lettersPerWord = 2
/** Letters beside a digit are no word. */
const wordPattern =
  /(?<![\p{Script=Latin}\p{M}\p{N}])[\p{Script=Latin}\p{M}]+(?:['’][\p{Script=Latin}\p{M}]+)?(?![\p{Script=Latin}\p{M}\p{N}])/gu
const englishSuffix = /['’](?:s|t|m|d|ll|re|ve)$/
const frenchPrefix = /^(?:l|d|j|m|t|s|n|c|qu|jusqu|lorsqu|puisqu)['’]/

/** A function word is stronger evidence than another word, and stronger still if only one language has it. */
const weights = { only: 2, shared: 0.5, accented: 1.5, word: 1, inflected: 0.75, name: 0.25 }
/** One word as its list writes it. */
const scoreMin = weights.word
/** Rarer words may be foreign ones that occur in English texts, such as names (`backgroundRarity`). */
const commonRarity = 0.85

/**
 * The language of a text if it is one that is translated: by its script, or by function words and words of the lists. Undefined for
 * English, for other languages, and if nothing distinguishes them.
 */
export function languageOf(text: string): Language | undefined {
  const head = withoutIdentifiers(text.slice(0, charsMax))
  const isShouted = !/\p{Ll}/u.test(head)
  const words = (head.match(wordPattern) ?? [])
    .slice(0, wordsMax)
    .filter((word) => isShouted || word !== word.toUpperCase())
  const byScript = /[\u0600-\uffff]/.test(head) ? languageOfScript(head) : undefined
  if (byScript === undefined) return languageOfWords(words)
  const english = words.filter((word) => isEnglishWord(word.toLowerCase())).length
  return byScript.words > english ? byScript.language : undefined
}

function languageOfScript(text: string): { language: Language; words: number } | undefined {
  const count = (pattern: RegExp) => text.match(pattern)?.length ?? 0
  const [kanas, hans] = [count(kana), count(han)]
  if (kanas + hans > 0)
    return { language: kanas > hans / 10 ? 'ja' : 'zh', words: (kanas + hans) / lettersPerWord }
  const letters = count(arabic)
  return letters === 0 ? undefined : { language: 'ar', words: letters / (2 * lettersPerWord) }
}

const isEnglishWord = (word: string) => (functionBits(word) & englishBit) !== 0 || isEnglish(stemOf(word))

interface Scores {
  english: number
  de: number
  fr: number
  es: number
}

interface ContentWord {
  word: string
  isName: boolean
}

function languageOfWords(words: readonly string[]): Language | undefined {
  const scores: Scores = { english: 0, de: 0, fr: 0, es: 0 }
  const others = countFunctionWords(words, scores)
  // Most English texts end here, without reading a list.
  if (scores.english > 0 && scores.english >= Math.max(scores.de, scores.fr, scores.es)) return undefined
  countOthers(others, scores)
  const [first, second] = latin.toSorted((a, b) => scores[b] - scores[a])
  if (first === undefined || second === undefined) return undefined
  const isClear = scores[first] > scores.english && scores[first] > scores[second]
  return scores[first] >= scoreMin && isClear ? first : undefined
}

/** Returns the words other than function words. */
function countFunctionWords(words: readonly string[], scores: Scores): ContentWord[] {
  const others: ContentWord[] = []
  for (const [at, written] of words.entries()) {
    const word = written.toLowerCase()
    const bits = functionBits(word)
    if (bits === englishBit || englishSuffix.test(word)) scores.english += weights.only
    else if (frenchPrefix.test(word)) scores.fr += weights.only
    else if (bits === 0) others.push({ word, isName: at > 0 && /^\p{Lu}\p{Ll}/u.test(written) })
    else {
      if ((bits & englishBit) !== 0) scores.english += weights.shared
      for (const language of latin) {
        if ((bits & bitOf(language)) === 0) continue
        scores[language] += bits === bitOf(language) ? weights.only : weights.shared
      }
    }
  }
  return others
}

/** All three lists are read only if no function word distinguishes the languages. */
function countOthers(words: readonly ContentWord[], scores: Scores): void {
  const likely = latin.filter((language) => scores[language] > 0)
  for (const { word, isName } of words) {
    const stem = /^[a-z]+$/.test(word) ? stemOf(word) : ''
    const isCommon = isEnglish(stem) && backgroundRarity(stem) < commonRarity
    const found = isCommon
      ? []
      : (likely.length > 0 ? likely : latin).filter((language) => foreignWord(language, word) !== undefined)
    for (const language of found) scores[language] += weightOf(word, language)
    if (found.length === 0 && isEnglish(stem)) scores.english += isName ? weights.name : weights.word
  }
}

function weightOf(word: string, language: Language): number {
  if (/[^a-z]/.test(word)) return weights.accented
  return lexiconOf(language).findExactly(word).length > 0 ? weights.word : weights.inflected
}
