// oxlint-disable-next-line typescript/triple-slash-reference -- a package without types: an import would have to be found at run time
/// <reference path="./stopword.d.ts" />
import { stemmer } from 'stemmer'
import * as lists from 'stopword'
import type { Language } from './function-words.ts'

const charsMax = 100_000
const wordLettersMax = 40
const stemsKept = 50_000
/** Function words that the list of the package `stopword` lacks, and the parts of words such as "doesn't" and "we'll". */
const furtherStopWords =
  'again aren below cannot couldn didn does doesn doing don done during few further having hers isn its just ll no nor not once ought please re shall she shouldn so until us ve when whom why wouldn yes yours'
const stopWords = new Set([...(lists.eng ?? []), ...furtherStopWords.split(' ')])
const stems = new Map<string, string>()

/** Matches scripts without spaces, in which pairs of neighbouring characters serve as words. */
const pieces =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+|\p{Extended_Pictographic}|[\p{L}\p{N}]+/gu
const unspaced =
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u
const unspacedRun =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+|[^\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu

/**
 * Returns a text's words in order and in lower case, including stop words. Splits camelCase and snake_case, removes
 * accents and the Arabic article, and reads `17%` as "17 percent". Reads the first 100,000 characters and at
 * most `max` words.
 */
export function wordsIn(text: string, max: number): string[] {
  const plain = text
    .slice(0, charsMax)
    // The percent sign is the only significant word of "17% of 89.90".
    .replace(/(?<=\d)\s?%/g, ' percent')
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replace(/['’]s\b/g, '')
    .replace(/(?<=\p{N}\s?)%/gu, ' percent ')
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replace(/(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu, ' ')
    .normalize('NFKC')
    .toLowerCase()
  const words: string[] = []
  for (const [piece] of plain.matchAll(pieces)) {
    if (words.length >= max) break
    words.push(...wordsOfPiece(piece))
  }
  return words.length > max ? words.slice(0, max) : words
}

function wordsOfPiece(piece: string): string[] {
  if (/^[a-z0-9]+$/.test(piece)) return [piece.slice(0, wordLettersMax)]
  return (piece.match(unspacedRun) ?? []).flatMap((run) => {
    if (!unspaced.test(run)) return [run.replace(/^ال(?=.{3})/u, '').slice(0, wordLettersMax)]
    const letters = Array.from(run)
    return letters.length === 1 ? run : letters.slice(1).map((letter, at) => `${letters[at]}${letter}`)
  })
}

export const isStopWord = (word: string): boolean => stopWords.has(word)

/** The stop words of the languages that are translated. */
export const foreignStopWords: Record<Language, ReadonlySet<string>> = {
  ar: new Set(lists.ara),
  de: new Set(lists.deu),
  es: new Set(lists.spa),
  fr: new Set(lists.fra),
  ja: new Set(lists.jpn),
  zh: new Set(lists.zho),
}

/** Returns the Porter stem of an English word. A word in another script is its own stem. */
export function stemOf(word: string): string {
  const known = stems.get(word)
  if (known !== undefined) return known
  const stem = /^[a-z]+$/.test(word) ? stemmer(word) : word
  if (stems.size >= stemsKept) stems.clear()
  stems.set(word, stem)
  return stem
}
