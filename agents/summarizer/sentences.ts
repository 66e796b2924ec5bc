import { paragraphsOf } from './plain-text.ts'

export interface Sentence {
  text: string
  /** Index in the text, from 0. */
  index: number
  /** Index in its paragraph, from 0. */
  inParagraph: number
}

/** Maximum length of a sentence. Longer ones are split between words. */
const longestSentence = 600

/** Abbreviations after which ICU wrongly ends a sentence. */
const abbreviation =
  /(?:^|[\s("'„“])(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|etc|No|Nr|Fig|Vol|pp?|cf|ca|approx|Inc|Ltd|Co|Corp|Gen|Sen|Rep|Gov|Jan|Feb|Mar|Apr|Aug|Sept?|Oct|Nov|Dec|Art|Abs|Bd|Hrsg|bzw|usw|evtl|ggf|Str|Mme|Mlle|Sra?|Srta|Dott|Sig|ул|см|рис|им|\p{L})\.\s*$/u

/** Splits a text into sentences in any language supported by ICU. */
export function* sentencesOf(text: string): Generator<Sentence> {
  const segmenter = new Intl.Segmenter(undefined, { granularity: 'sentence' })
  let index = 0
  for (const paragraph of paragraphsOf(text)) {
    let inParagraph = 0
    for (const sentence of sentencesIn(paragraph, segmenter)) {
      if (!/[\p{L}\p{N}]/u.test(sentence)) continue
      yield { text: sentence, index, inParagraph }
      index += 1
      inParagraph += 1
    }
  }
}

function* sentencesIn(paragraph: string, segmenter: Intl.Segmenter): Generator<string> {
  let pending = ''
  for (const { segment } of segmenter.segment(paragraph)) {
    const short = pending !== '' && pending.length < longestSentence
    const goesOn = short && (abbreviation.test(pending.slice(-20)) || /^\p{Ll}/u.test(segment))
    if (!goesOn && pending !== '') yield* pieces(pending.trim())
    pending = goesOn ? pending + segment : segment
  }
  if (pending !== '') yield* pieces(pending.trim())
}

function* pieces(sentence: string): Generator<string> {
  let rest = sentence
  while (rest.length > longestSentence) {
    const space = rest.lastIndexOf(' ', longestSentence)
    const at = space > longestSentence / 2 ? space : wholeCharacters(rest, longestSentence)
    yield rest.slice(0, at).trim()
    rest = rest.slice(at).trim()
  }
  if (rest !== '') yield rest
}

/** Moves an index back if it would split a surrogate pair. */
const wholeCharacters = (text: string, at: number): number =>
  /[\uD800-\uDBFF]/.test(text.charAt(at - 1)) ? at - 1 : at
