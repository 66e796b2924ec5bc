import { isEnglish } from './english.ts'
import { likeness, type Meaning, meaningOf } from './meaning.ts'
import { isStopWord, stemOf, wordsIn } from './split.ts'

/** A line with a larger fraction of capitalised words is a title, in which capitals mean nothing. */
const titleShare = 0.75
const titleWordsMin = 4
/** A line of at most this many words that are all capitalised is a name or a signature. */
const signatureWordsMax = 3
const charsMax = 100_000
const namesMax = 10_000

const sentenceEnd = /(?<=[.!?:;…。！？])\s+|(?<!\s)\s+(?=["“„«(]\p{Lu})/u
const capitalised = /^\p{Lu}\p{Ll}/u
const closing =
  /^(?:(?:best|kind|warm|many)\s+)?(?:yours|regards|sincerely|cheers|thanks|love|greetings)\b[^,\n]{0,30},\s*(.{1,80})$/iu
const greeting = /^(?:dear|hi|hello|hey)\s+([\p{L}'’-]{1,40})\s*[,!]/iu
const wordPattern = /[\p{L}\p{M}\p{N}'’-]+/gu

/** A capitalised word after one of these is a person's name. */
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
/** Words before a comma at the start of a sentence that are not names. */
const connectives = new Set(
  'additionally also alright alternatively besides finally first furthermore great hello hey hi however instead lastly meanwhile moreover next no now ok okay otherwise overall please second specifically sure thanks then therefore thus today tomorrow ugh well wow yes'.split(
    ' ',
  ),
)
/** The minimum similarity between a name and common given names. */
const personalMin = 0.06
const givenNames =
  'john mary james robert michael william david richard joseph thomas charles anna emma laura susan linda alice peter paul george kevin brian sarah karen lisa'
/** A word that is more similar to these places, companies and dates than to given names does not name a person. */
const otherNames = [
  'london paris italy texas california germany australia chicago boston madrid europe africa france city country river island avenue',
  'google amazon microsoft apple tesla company university bank inc magazine telescope software app website month week january monday english language',
]

/**
 * Returns the words of the text that name a person. Recognises names by position: after a closing formula or a
 * greeting, alone on a line, addressed at the start of a sentence, after "Mr" or "by"; and inside a sentence by a
 * capital letter and a meaning closer to given names than to places or companies. Names of topics (Ethereum, Chicago)
 * are not included.
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

/** Words that start with a digit: `12`, `89.90`, `5km`, `3rd`. */
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

let prototypes: { persons: Meaning | undefined; others: (Meaning | undefined)[] } | undefined
const meaningOfAll = (words: string) => meaningOf(words.split(' ').map(stemOf))

function isPersonal(word: string, before: string): boolean {
  if (beforeNames.has(before.toLowerCase())) return true
  const stem = stemOf(word.toLowerCase())
  if (!isEnglish(stem)) return false
  prototypes ??= { persons: meaningOfAll(givenNames), others: otherNames.map(meaningOfAll) }
  const meaning = meaningOf([stem])
  const personal = likeness(meaning, prototypes.persons)
  return personal >= personalMin && prototypes.others.every((other) => likeness(meaning, other) <= personal)
}

/** Matches "Priya, could you …". */
const isAddressed = (word: string, sentence: string) =>
  sentence.trimStart().startsWith(`${word},`) && !connectives.has(word.toLowerCase())

/** Finds names after "Yours," or "Dear", which may be in lower case. */
function readFormulas(lines: readonly string[], names: Set<string>): void {
  const filled = lines.map((line) => line.trim()).filter((line) => line !== '')
  filled.forEach((line, at) => {
    const greeted = greeting.exec(line)?.[1]
    if (greeted !== undefined && (capitalised.test(greeted) || !isStopWord(greeted))) names.add(greeted)
    const rest = closing.exec(lastSentence(line))?.[1]
    const signature = rest ?? (closing.test(`${lastSentence(line)} x`) ? filled[at + 1] : undefined)
    const words = wordsOf(signature ?? '')
    if (words.length <= signatureWordsMax) for (const word of words) names.add(word)
  })
}

const lastSentence = (line: string) => line.split(/(?<=[.!?…])\s+/u).at(-1) ?? ''

const wordsOf = (text: string): string[] =>
  [...text.matchAll(wordPattern)].map(([word]) => word.replace(/['’]s$/u, ''))

/**
 * Returns a predicate for names and numbers among the words of `wordsIn`, which say nothing about the kind of task.
 */
export function particularsOf(text: string): (word: string) => boolean {
  const names = new Set(wordsIn(namesIn(text).join(' . '), namesMax))
  return (word) => names.has(word) || isNumber(word)
}
