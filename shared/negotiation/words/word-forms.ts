import { cognateOf } from './cognates.ts'
import { functionWord, type Language } from './function-words.ts'
import { type Lexicon, lexiconOf, plain } from './lexicon.ts'
import { foreignStopWords } from './split.ts'

/** Particles of German verbs that may be at the end of the clause. */
export const particles = new Set(
  'ab an auf aus bei bereit dar durch ein fest frei fort heraus her herum herunter hervor hin hinzu hoch los mit nach nieder raus rein runter um vor voraus vorbei weg weiter wieder zu zurück zusammen'.split(
    ' ',
  ),
)
const partLettersMin = 4
/** The least letters of the end of a compound whose beginning is not known. */
const endLettersMin = 5
const wordLettersMax = 40
/** Letters between the parts of a German compound. */
const links = ['', 's', 'n', 'es', 'en', 'e', 'er']

const wordsKept = 20_000
const kept = new Map<string, readonly string[] | undefined>()

/**
 * The English words of a word in lower case; empty for a word that English would leave out, undefined if it is not known.
 */
export function foreignWord(language: Language, word: string): readonly string[] | undefined {
  if (word.length > wordLettersMax) return undefined
  const key = `${language} ${word}`
  if (kept.has(key)) return kept.get(key)
  const english = translated(language, word)
  if (kept.size >= wordsKept) kept.clear()
  kept.set(key, english)
  return english
}

function translated(language: Language, word: string): readonly string[] | undefined {
  const meaning = functionWord(language, word)
  if (meaning !== undefined) return meaning === '' ? [] : [meaning]
  const lexicon = lexiconOf(language)
  const found = lexicon.find(word)
  if (found.length > 0) return found
  const form = otherForm[language]?.(word, lexicon)
  if (form !== undefined && form.length > 0) return form
  if (foreignStopWords[language].has(word)) return []
  const cognate = cognateOf(language, plain(word))
  if (cognate !== undefined) return [cognate]
  return language === 'de' ? compound(word, lexicon) : undefined
}

const otherForm: Partial<
  Record<Language, (word: string, lexicon: Lexicon) => readonly string[] | undefined>
> = {
  de: (word, lexicon) =>
    germanVerb(word, lexicon) ?? withoutParticle(word, lexicon) ?? withUmlauts(word, lexicon),
  es: withoutPronouns,
  ar: withoutPrefix,
}

/** Arabic writes the article, "and" and some prepositions as a part of the word. */
function withoutPrefix(word: string, lexicon: Lexicon): readonly string[] | undefined {
  const bare = word.replace(/^[وف]?(?:[بك]?ال|لل|[بلكس])?(?=.{2})/u, '')
  return bare === word ? undefined : lexicon.find(bare)
}

/** `zusammenzufassen`, `zusammengefasst`, `gesucht`, `berechnet`. */
function germanVerb(word: string, lexicon: Lexicon): readonly string[] | undefined {
  const [, particle = '', inner] = /^(\p{L}{2,8}?)?(?:zu|ge)(\p{L}{3,})$/u.exec(word) ?? []
  if (inner !== undefined && (particle === '' || particles.has(particle))) {
    const found = infinitive(`${particle}${inner}`, lexicon)
    if (found !== undefined) return found
  }
  return infinitive(word, lexicon)
}

function infinitive(word: string, lexicon: Lexicon): readonly string[] | undefined {
  const whole = lexicon.find(word)
  if (whole.length > 0) return whole
  const base = word.replace(/(?:e?(?:t|st|te|ten|test|tet)|ung(?:en)?)$/u, '')
  if (base === word || base.length < 3) return undefined
  for (const ending of ['en', 'n']) {
    const found = lexicon.findExactly(`${base}${ending}`)
    if (found.length > 0) return found
  }
  return undefined
}

/** `heraussuchen`, `ausrechnen`: the verb alone says most. */
function withoutParticle(word: string, lexicon: Lexicon): readonly string[] | undefined {
  for (let letters = 2; letters <= 8 && word.length - letters >= partLettersMin; letters += 1) {
    if (!particles.has(word.slice(0, letters))) continue
    const found = germanVerb(word.slice(letters), lexicon)
    if (found !== undefined) return found
  }
  return undefined
}

/** `uebersetzen`, as on keyboards without umlauts. */
function withUmlauts(word: string, lexicon: Lexicon): readonly string[] | undefined {
  const spelled = word.replace(/ae|oe|ue/g, ([vowel]) => ({ a: 'ä', o: 'ö' })[vowel as 'a' | 'o'] ?? 'ü')
  return spelled === word ? undefined : germanVerb(spelled, lexicon)
}

/**
 * Splits a compound into as few known words as possible, with one English word for each. If only its end is known, the word itself is
 * kept before it, because the end names the kind of thing.
 */
function compound(word: string, lexicon: Lexicon): readonly string[] | undefined {
  const { length } = word
  if (length < 2 * partLettersMin) return undefined
  /** The English words from each position to the end. */
  const rest: (readonly string[] | undefined)[] = []
  rest[length] = []
  for (let from = length - partLettersMin; from >= 0; from -= 1) {
    for (let to = from + partLettersMin; to <= length; to += 1) {
      const after = rest[to]
      const before = rest[from]
      if (after === undefined || (before !== undefined && before.length <= after.length + 1)) continue
      const english = partOf(word.slice(from, to), to === length, lexicon)
      if (english !== undefined) rest[from] = [english, ...after]
    }
  }
  if (rest[0] !== undefined) return rest[0]
  const known = rest.findIndex((words, from) => words !== undefined && from >= partLettersMin)
  const isNamed = known !== -1 && lexicon.findExactly(word.slice(known)).length > 0
  return isNamed && length - known >= endLettersMin ? [word, ...(rest[known] ?? [])] : undefined
}

function partOf(piece: string, isLast: boolean, lexicon: Lexicon): string | undefined {
  if (isLast) return lexicon.find(piece)[0]
  for (const link of links) {
    const bare = piece.slice(0, piece.length - link.length)
    if (!piece.endsWith(link) || bare.length < partLettersMin) continue
    const [english] = lexicon.findExactly(bare)
    if (english !== undefined) return english
  }
  return undefined
}

/** `búscame`, `tradúcemelo`. */
function withoutPronouns(word: string, lexicon: Lexicon): readonly string[] | undefined {
  let rest = word
  for (let times = 0; times < 2; times += 1) {
    const shorter = rest.replace(/(?:me|te|se|nos|lo|la|los|las|le|les)$/u, '')
    if (shorter === rest || shorter.length < 3) return undefined
    const found = lexicon.find(shorter)
    if (found.length > 0) return found
    rest = shorter
  }
  return undefined
}
