import { isEnglish } from './english.ts'
import { likeness, type Meaning, meaningOf } from './meaning.ts'
import { stemOf, wordsIn } from './split.ts'

/** A line with more capitalised words than this share is a title: there capitals tell nothing. */
const titleShare = 0.75
const titleWordsMin = 4
/** A line of so few words, all of them capitalised, is a name or a signature. */
const signatureWordsMax = 3
const charsMax = 100_000
const namesMax = 10_000

const sentenceEnd = /(?<=[.!?:;…。！？])\s+|\s+(?=["“„«(]\p{Lu})/u
const capitalised = /^\p{Lu}\p{Ll}/u
const closing =
  /^(?:(?:best|kind|warm|many)\s+)?(?:yours|regards|sincerely|cheers|thanks|love|greetings)\b[^,\n]{0,30},\s*(.{1,80})$/iu
const greeting = /^(?:dear|hi|hello|hey)\s+([\p{L}'’-]{1,40})\s*[,!]/iu
const wordPattern = /[\p{L}\p{M}\p{N}'’-]+/gu

/** Words after which a capitalised word is a person's name. */
const beforeNames = new Set([
  'mr',
  'mrs',
  'ms',
  'dr',
  'prof',
  'by',
  'from',
  'signed',
  'named',
  'called',
  'am',
  "i'm",
])
/** A word that is so like common given names is one. */
const personalMin = 0.06
const givenNames =
  'john mary james robert michael william david richard joseph thomas charles anna emma laura susan linda alice peter paul george kevin brian sarah karen lisa'

/**
 * The words of the text that name a person. Recognised by where they are: below a closing formula or after a greeting, alone
 * on a line, addressed at the beginning of a sentence, after "Mr" or "by"; and, inside a sentence, by a capital letter and a
 * meaning like that of given names. What a text is about often has a name too (Ethereum): that is none of these.
 */
export function namesIn(text: string): string[] {
  const names = new Set<string>()
  const plain = new Set<string>()
  const lines = text.slice(0, charsMax).split(/\r?\n/)
  for (const line of lines) readLine(line.trim(), names, plain)
  for (const name of names) if (plain.has(name.toLowerCase())) names.delete(name)
  readFormulas(lines, names)
  return [...names]
}

/** Numbers, and what begins with one: `12`, `89.90`, `5km`, `3rd`. */
export const isNumber = (word: string): boolean => /^\p{N}/u.test(word)

function readLine(line: string, names: Set<string>, plain: Set<string>): void {
  const all = wordsOf(line)
  const capitals = all.filter((word) => capitalised.test(word))
  const isSignature = all.length <= signatureWordsMax && capitals.length === all.length
  const isTitle = all.length > titleWordsMin && capitals.length > titleShare * all.length
  for (const sentence of line.split(sentenceEnd)) {
    wordsOf(sentence).forEach((word, at, words) => {
      if (!capitalised.test(word)) plain.add(word.toLowerCase())
      else if (isSignature || isAddressed(word, sentence)) names.add(word)
      else if (at > 0 && !isTitle && isPersonal(word, words[at - 1] ?? '')) names.add(word)
    })
  }
}

let persons: Meaning | undefined

function isPersonal(word: string, before: string): boolean {
  if (beforeNames.has(before.toLowerCase())) return true
  const stem = stemOf(word.toLowerCase())
  if (!isEnglish(stem)) return false
  persons ??= meaningOf(givenNames.split(' ').map(stemOf))
  return likeness(meaningOf([stem]), persons) >= personalMin
}

/** "Priya, could you …" */
const isAddressed = (word: string, sentence: string) => sentence.trimStart().startsWith(`${word},`)

/** Names below "Yours," or after "Dear" are names in lower case too. */
function readFormulas(lines: readonly string[], names: Set<string>): void {
  const filled = lines.map((line) => line.trim()).filter((line) => line !== '')
  filled.forEach((line, at) => {
    const greeted = greeting.exec(line)?.[1]
    if (greeted !== undefined) names.add(greeted)
    const rest = closing.exec(lastSentence(line))?.[1]
    const signature = rest ?? (closing.test(`${lastSentence(line)} x`) ? filled[at + 1] : undefined)
    const words = wordsOf(signature ?? '')
    if (words.length <= signatureWordsMax) for (const word of words) names.add(word)
  })
}

const lastSentence = (line: string) => line.split(/(?<=[.!?…])\s+/u).at(-1) ?? ''

const wordsOf = (text: string): string[] =>
  [...text.matchAll(wordPattern)].map(([word]) => word.replace(/['’]s$/u, ''))

/** Whether a word, as `wordsIn` reads it, is a name of the text or a number: it says nothing about a kind of task. */
export function particularsOf(text: string): (word: string) => boolean {
  const names = new Set(wordsIn(namesIn(text).join(' . '), namesMax))
  return (word) => names.has(word) || isNumber(word)
}
