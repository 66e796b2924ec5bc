import { functionWord, type Language } from './function-words.ts'
import { languageOf } from './language.ts'
import { lexiconOf } from './lexicon.ts'
import { foreignWord, particles } from './word-forms.ts'

/** A word of a text, in its place. */
interface Piece {
  from: number
  to: number
  /** Absent if the word is kept. */
  english?: readonly string[]
}

const charsMax = 10_000
const joinedMax = 4
/** How many words before a German particle its verb is sought. */
const verbDistance = 12

const hasWords = /[\p{L}\p{N}]/u

/**
 * Replaces the words that the list of the text's language knows by English words (`lexicon/README.md`), and leaves out words that English
 * does not need. Names, numbers and unknown words are kept. English texts and texts in other languages are returned unchanged. Translates
 * the first 10,000 characters and drops the rest of a translated text.
 */
export function inEnglish(text: string, language: Language | undefined = languageOf(text)): string {
  if (language === undefined) return text
  const read = text.slice(0, charsMax)
  let english = ''
  let at = 0
  for (const piece of piecesOf(read, language)) {
    const between = read.slice(at, piece.from)
    english += `${/^['’-]$/.test(between) ? '' : between} ${piece.english?.join(' ') ?? read.slice(piece.from, piece.to)} `
    at = piece.to
  }
  const all = `${english}${read.slice(at)}`.replace(/[^\S\n]+/gu, ' ').trim()
  return hasWords.test(all) ? all : text
}

/** Maps each English word of a translated text to the word as the text writes it. Empty if the text is not translated. */
export function foreignWordsOf(text: string): ReadonlyMap<string, string> {
  const words = new Map<string, string>()
  const language = languageOf(text)
  if (language === undefined) return words
  const read = text.slice(0, charsMax)
  for (const { from, to, english = [] } of piecesOf(read, language)) {
    for (const word of english) if (!words.has(word)) words.set(word, read.slice(from, to))
  }
  return words
}

function piecesOf(text: string, language: Language): Piece[] {
  return language === 'zh' || language === 'ja'
    ? unspacedPieces(text, language)
    : spacedPieces(text, language)
}

const spacedWord = /[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*/gu
const subword = /[\p{L}\p{M}\p{N}]+/gu

/** Languages in which a capital letter inside a sentence marks a name. */
const nameCapitals = new Set<Language>(['es', 'fr'])
const startsSentence = /(?:^|[.!?:;…\n])[\s"“«¿¡(]*$/u

/** A surname follows. */
const afterTitle = /(?:^|[^\p{L}])(?:Frau|Herrn?|Madame|Monsieur|Mme|Dr\.?)\s+$/u
const titleLettersMax = 12

function spacedPieces(text: string, language: Language): Piece[] {
  const isShouted = !/\p{Ll}/u.test(text)
  const pieces: Piece[] = []
  const add = (word: string, from: number) => {
    const before = text.slice(Math.max(0, from - titleLettersMax), from)
    const isName =
      /^\p{Lu}\p{Ll}/u.test(word) &&
      (afterTitle.test(before) || (nameCapitals.has(language) && !startsSentence.test(before)))
    const isPartOfName =
      isName &&
      (/(?:^|\s)\p{Lu}[\p{L}\p{M}'’-]*\s$/u.test(before) ||
        /^\s\p{Lu}\p{Ll}/u.test(text.slice(from + word.length, from + word.length + 3)))
    const english = isPartOfName ? undefined : englishOf(word, language, { isShouted, isName })
    pieces.push({ from, to: from + word.length, ...(english !== undefined && { english }) })
  }
  for (const { 0: word, index } of text.matchAll(spacedWord)) {
    const asOne = /['’-]/.test(word) ? lexiconOf(language).findExactly(word.toLowerCase()) : undefined
    if (asOne === undefined) add(word, index)
    else if (asOne.length > 0) pieces.push({ from: index, to: index + word.length, english: asOne })
    else for (const { 0: part, index: at } of word.matchAll(subword)) add(part, index + at)
  }
  if (language === 'de') joinParticles(text, pieces)
  return pieces
}

function englishOf(
  word: string,
  language: Language,
  { isShouted, isName }: { isShouted: boolean; isName: boolean },
): readonly string[] | undefined {
  const isAcronym = !isShouted && word.length > 1 && word === word.toUpperCase() && /\p{Lu}/u.test(word)
  if (isAcronym || /^\p{N}+$/u.test(word)) return undefined
  const lower = word.toLowerCase().replaceAll('ـ', '')
  if (!isName) return foreignWord(language, lower)
  const exact = lexiconOf(language).findExactly(lower)
  return exact.length > 0 ? exact : undefined
}

/** "Fasse den Text zusammen": the verb is `zusammenfassen`. */
function joinParticles(text: string, pieces: Piece[]): void {
  pieces.forEach((piece, at) => {
    const particle = text.slice(piece.from, piece.to)
    if (!particles.has(particle) || !endsClause(text, piece, pieces[at + 1])) return
    for (let back = at - 1; back >= Math.max(0, at - verbDistance); back -= 1) {
      const verb = pieces[back] as Piece
      if (/[.!?:;\n]/.test(text.slice(verb.to, (pieces[back + 1] as Piece).from))) return
      const word = text.slice(verb.from, verb.to).toLowerCase()
      if (functionWord('de', word) !== undefined || particles.has(word)) continue
      const english = lexiconOf('de').find(`${particle}${word}`)
      if (english.length === 0) continue
      verb.english = english
      piece.english = []
      return
    }
  })
}

function endsClause(text: string, piece: Piece, next: Piece | undefined): boolean {
  if (next === undefined || /[.!?:;,\n]/.test(text.slice(piece.to, next.from))) return true
  return /^(?:und|oder|sowie|bitte)$/.test(text.slice(next.from, next.to))
}

const segmenters = new Map<Language, Intl.Segmenter>()
const unspacedRun = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー々]+/gu

function unspacedPieces(text: string, language: Language): Piece[] {
  let segmenter = segmenters.get(language)
  if (segmenter === undefined) {
    segmenter = new Intl.Segmenter(language, { granularity: 'word' })
    segmenters.set(language, segmenter)
  }
  const pieces: Piece[] = []
  for (const { 0: run, index: from } of text.matchAll(unspacedRun)) {
    const ends = [...segmenter.segment(run)].map(({ segment, index }) => index + segment.length)
    let start = 0
    for (let at = 0; at < ends.length; ) {
      const { count, english } = longestJoined(run, start, ends, at, language)
      const to = ends[at + count - 1] as number
      if (english !== undefined) pieces.push({ from: from + start, to: from + to, english })
      else pieces.push(...insideOf(run, start, to, from, language))
      start = to
      at += count
    }
  }
  return pieces
}

/** The longest known word that begins with a segment: it may consist of several. */
function longestJoined(run: string, start: number, ends: readonly number[], at: number, language: Language) {
  const lexicon = lexiconOf(language)
  for (let count = Math.min(joinedMax, ends.length - at); count > 1; count -= 1) {
    const english = lexicon.findExactly(run.slice(start, ends[at + count - 1]))
    if (english.length > 0) return { count, english }
  }
  return { count: 1, english: foreignWord(language, run.slice(start, ends[at])) }
}

/**
 * The known words inside an unknown segment: words of any length if they fill it (`我想`), otherwise of two characters or more.
 */
function insideOf(run: string, start: number, end: number, offset: number, language: Language): Piece[] {
  const whole = language === 'zh' ? split(run, start, end, 1, language) : undefined
  const parts =
    whole?.every(({ english }) => english !== undefined) === true
      ? whole
      : split(run, start, end, 2, language)
  return parts.map(({ from, to, english = droppedOrKept(run.slice(from, to)) }) => ({
    from: offset + from,
    to: offset + to,
    ...(english !== undefined && { english }),
  }))
}

/** The longest known words from the left; the characters between them are pieces without English words. */
function split(run: string, start: number, end: number, lettersMin: number, language: Language): Piece[] {
  const pieces: Piece[] = []
  let unknown = start
  for (let from = start; from < end; ) {
    let to = Math.min(end, from + lexiconOf(language).longest)
    let english: readonly string[] | undefined
    for (; to >= from + lettersMin; to -= 1) {
      english = foreignWord(language, run.slice(from, to))
      if (english !== undefined) break
    }
    if (english === undefined) {
      from += 1
      continue
    }
    if (from > unknown) pieces.push({ from: unknown, to: from })
    pieces.push({ from, to, english })
    from = to
    unknown = to
  }
  if (end > unknown) pieces.push({ from: unknown, to: end })
  return pieces
}

/** Unknown kana are inflections, and unknown single characters are particles. */
const droppedOrKept = (word: string): readonly string[] | undefined =>
  word.length === 1 || /^\p{Script=Hiragana}+$/u.test(word) ? [] : undefined
