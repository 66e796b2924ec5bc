import { backgroundRarity, relatedTo } from '../words/english.ts'
import { withoutIdentifiers } from '../words/identifiers.ts'
import { taskTextOf } from '../words/instruction.ts'
import { type Meaning, meaningOf } from '../words/meaning.ts'
import { particularsOf } from '../words/names.ts'
import { isStopWord, stemOf, wordsIn } from '../words/split.ts'
import { inEnglish } from '../words/translation.ts'
import { writtenWords } from '../words/written-words.ts'
import type { NegotiationRequest } from './request.ts'

/** A word of the query that counts towards the match. */
export interface Term {
  stem: string
  /** Rarity in English, 0.05 … 1. */
  weight: number
  related: readonly (readonly [stem: string, share: number])[]
}

/** The parsed instruction of a request in English, and the types of its material. */
export interface Query {
  terms: readonly Term[]
  /** Maps each stem to the indexes of the terms that it matches, with the similarity. */
  answers: ReadonlyMap<string, readonly (readonly [term: number, share: number])[]>
  /** The stems that count for learning: without names, numbers and courtesies. */
  features: readonly string[]
  /** The stems of stop words, because phrasing also distinguishes tasks. */
  common: readonly string[]
  /** Absent if no word is English. */
  meaning: Meaning | undefined
  /** Maps each stem to the word as written in the text, which may be in another language. Computed on first use. */
  written: () => ReadonlyMap<string, string>
  /** Media types of pasted data, such as `text/csv`. */
  payloadTypes: readonly string[]
}

/** Numbers are ignored unless the text has no other words. */
const isNumeral = (word: string) => /^\p{N}+$/u.test(word) || spelledNumber.test(word)
const spelledNumber =
  /^(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty|hundred|thousand|million|billion)s?$/

/** Words of greetings and thanks, which say nothing about a task. */
const courtesies = new Set(
  'please pls plz kindly hi hello hey dear thanks thank thx ty cheers regards greetings sincerely yours morning evening welcome sorry bitte danke hallo liebe lieber gruss grusse merci bonjour salut svp cordialement gracias hola favor saludos grazie ciao obrigado'.split(
    ' ',
  ),
)

/** Maximum number of words that count. */
export const termsMax = 64
const wordsMax = 10_000
const commonMax = 16
const writtenCharsMax = 20_000
/**
 * The last query. A single entry suffices for a ranking, and a WeakMap would slow down minor garbage collections.
 */
let last: { request: NegotiationRequest; query: Query } | undefined

/** Parses the request's text once, however many agents are scored in a row. */
export function queryOf(request: NegotiationRequest): Query {
  if (last?.request === request) return last.query
  const { taskSummary, taskDetails } = request
  const query = readQuery(taskDetails === undefined ? taskSummary : `${taskSummary}\n${taskDetails}`)
  last = { request, query }
  return query
}

/** The last text that was read: the training words of a message are counted in the same turn in which it is ranked. */
let lastRead: { text: string; query: Query } | undefined

/** Only the 64 most significant words of a long text count: rare and repeated words. */
export function readQuery(text: string): Query {
  if (lastRead?.text !== text) lastRead = { text, query: parsed(text) }
  return lastRead.query
}

function parsed(whole: string): Query {
  const { instruction: all, types: payloadTypes } = taskTextOf(whole)
  const instruction = withoutIdentifiers(all)
  const text = inEnglish(instruction)
  const words = wordsIn(text, wordsMax)
  const isParticular = particularsOf(text)
  const counts = new Map<string, number>()
  const common = new Set<string>()
  const isAllNumbers = words.every((word) => isStopWord(word) || isNumeral(word))
  for (const word of words) {
    if (isNumeral(word) && !isAllNumbers) continue
    if (!isStopWord(word)) add(counts, stemOf(word))
    else if (common.size < commonMax && !isParticular(word) && !courtesies.has(word)) common.add(stemOf(word))
  }
  let terms = [...counts].map(([stem, count]) => ({ stem, count, weight: backgroundRarity(stem) }))
  if (terms.length > termsMax) {
    terms = terms
      .sort((a, b) => b.weight * (1 + Math.log(b.count)) - a.weight * (1 + Math.log(a.count)))
      .slice(0, termsMax)
  }
  const read = terms.map(({ stem, weight }) => ({ stem, weight, related: relatedTo(stem) }))
  return {
    terms: read,
    answers: answersOf(read),
    features: featuresOf(terms, words, isParticular),
    common: [...common].filter((stem) => !counts.has(stem)),
    meaning: meaningOf(terms.map(({ stem }) => stem)),
    written: onFirstUse(() => writtenWords(instruction, writtenCharsMax)),
    payloadTypes,
  }
}

function onFirstUse<T>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}

function answersOf(terms: readonly Term[]): Map<string, [number, number][]> {
  const answers = new Map<string, [number, number][]>()
  terms.forEach(({ stem, related }, at) => {
    for (const [other, share] of [[stem, 1] as const, ...related]) {
      const known = answers.get(other)
      if (known === undefined) answers.set(other, [[at, share]])
      else known.push([at, share])
    }
  })
  return answers
}

function featuresOf(
  terms: readonly { stem: string }[],
  words: readonly string[],
  isParticular: (word: string) => boolean,
): string[] {
  const general = new Set<string>()
  for (const word of words) if (!isParticular(word) && !courtesies.has(word)) general.add(stemOf(word))
  return terms.map(({ stem }) => stem).filter((stem) => general.has(stem))
}

function add(counts: Map<string, number>, stem: string): void {
  counts.set(stem, (counts.get(stem) ?? 0) + 1)
}
