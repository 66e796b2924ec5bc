import { readFileSync } from 'node:fs'
import { stemmer as arabicStem } from '@orama/stemmers/arabic'
import { stemmer as frenchStem } from '@orama/stemmers/french'
import { stemmer as germanStem } from '@orama/stemmers/german'
import { stemmer as spanishStem } from '@orama/stemmers/spanish'
import { backgroundRarity } from './english.ts'
import type { Language } from './function-words.ts'
import { stemOf } from './split.ts'

/** An English word for a foreign one; the place is 0 if the foreign word is its usual translation. */
interface Sense {
  english: string
  place: number
}

type Senses = Map<string, Sense[]>

export interface Lexicon {
  /** English words for a word in lower case, in any inflection, the best first. Empty if it is not in the list. */
  find(word: string): readonly string[]
  /** Like `find`, for the word as the list writes it. */
  findExactly(word: string): readonly string[]
  /** The length of the longest word. */
  longest: number
}

/** At most this many English words stand for a foreign one. */
const sensesMax = 2

const stems: Partial<Record<Language, (word: string) => string>> = {
  ar: arabicStem,
  de: germanStem,
  es: spanishStem,
  fr: frenchStem,
  ja: (word) => word.replace(/(?<=\p{Script=Han})\p{Script=Hiragana}+$/u, ''),
}

const loaded = new Map<Language, Lexicon>()

/** The list of a language (`lexicon/`), read on first use. */
export function lexiconOf(language: Language): Lexicon {
  const known = loaded.get(language)
  if (known !== undefined) return known
  const made = read(language)
  loaded.set(language, made)
  return made
}

/** Without accents. Japanese marks are part of a letter, and a long vowel at the end is often left out. */
export function plain(word: string): string {
  if (/^[a-z]+$/.test(word)) return word
  if (/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(word)) return word.replace(/ー$/u, '')
  return word
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .replaceAll('ß', 'ss')
}

function read(language: Language): Lexicon {
  const exact: Senses = new Map()
  const stemmed: Senses = new Map()
  const stem = stems[language]
  let longest = 0
  const text = readFileSync(new URL(`./lexicon/${language}.txt`, import.meta.url), 'utf8')
  for (const line of text.split('\n')) {
    const [english = '', words = ''] = line.split('\t')
    words.split(',').forEach((word, place) => {
      if (word === '') return
      longest = Math.max(longest, word.length)
      const sense = { english, place }
      add(exact, word, sense)
      if (stem !== undefined) add(stemmed, stem(plain(word)), sense)
    })
  }
  return {
    longest,
    findExactly: (word) => best(exact.get(word)),
    find(word) {
      const found = exact.get(word)
      if (found !== undefined || stem === undefined) return best(found)
      return best(stemmed.get(stem(plain(word))))
    },
  }
}

function add(senses: Senses, word: string, sense: Sense): void {
  const known = senses.get(word)
  if (known === undefined) senses.set(word, [sense])
  else known.push(sense)
}

const none: readonly string[] = []

/** The usual translations first, then common English words, each with another stem. */
function best(senses: readonly Sense[] = []): readonly string[] {
  if (senses.length === 0) return none
  const ordered = senses
    .map((sense) => ({ ...sense, stem: stemOf(sense.english) }))
    .map((sense) => ({ ...sense, rarity: backgroundRarity(sense.stem) }))
    .sort((a, b) => a.place - b.place || a.rarity - b.rarity)
  const chosen = new Map<string, string>()
  for (const { english, stem } of ordered) {
    if (chosen.size >= sensesMax) break
    if (!chosen.has(stem)) chosen.set(stem, english)
  }
  return [...chosen.values()]
}
