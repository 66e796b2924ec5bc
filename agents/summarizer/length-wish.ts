import { z } from 'zod'

/** The requested length and format of the summary. If empty, the summarizer decides. */
export interface LengthWish {
  sentences?: number | undefined
  words?: number | undefined
  /** Fraction of the sentences to keep, 0 to 1. */
  ratio?: number | undefined
  /** Whether to output a list with one sentence per line. */
  bullets?: boolean | undefined
}

/** A data part with the same options. */
export const lengthInput = z.object({
  sentences: z.int({ error: 'must be a whole number from 1 to 100' }).min(1).max(100).optional(),
  words: z.int({ error: 'must be a whole number from 1 to 5000' }).min(1).max(5000).optional(),
  bullets: z.boolean({ error: 'must be true or false' }).optional(),
})

const numbersByWord: Record<number, string> = {
  1: 'a|an|one|single|einem|einen|einer|eine|ein|une|un|una|uno|één|een|um|uma|ett|en|одно|одном|одним|jednym|jedno',
  2: 'two|couple of|zwei|deux|dos|due|twee|dois|duas|två|два|две|двух|двумя|dwóch|dwa',
  3: 'three|a few|few|drei|einigen|trois|quelques|tres|tre|drie|três|три|трёх|трех|trzech|trzy',
  4: 'four|vier|quatre|cuatro|quattro|quatro|fyra|четыре|четырёх|четырех|czterech',
  5: 'five|fünf|cinq|cinco|cinque|vijf|fem|пять|пяти|pięciu',
  6: 'six|sechs|seis|sei|zes|sex|шесть|шести|sześciu',
  7: 'seven|sieben|sept|siete|sette|zeven|sju|семь|семи|siedmiu',
  8: 'eight|acht|huit|ocho|otto|oito|åtta|восемь|восьми|ośmiu',
  9: 'nine|neun|neuf|nueve|nove|negen|nio|девять|девяти|dziewięciu',
  10: 'ten|zehn|dix|diez|dieci|tien|dez|tio|десять|десяти|dziesięciu',
}
const numberWords = new Map(
  Object.entries(numbersByWord).flatMap(([value, words]) =>
    words.split('|').map((word): [string, number] => [word, Number(value)]),
  ),
)

const count = `(\\d{1,4}|${[...numberWords.keys()].sort((a, b) => b.length - a.length).join('|')})`
const between = '[\\s-]+(?:(?:short|brief|key|main|bullet|single|kurze[nr]?|wichtigste[nr]?)[\\s-]+){0,2}'
const sentenceNouns =
  'sentences?|sätzen?|satz|phrases?|frases?|frasi|oraci[oó]n(?:es)?|zinnen|zin|meningar|mening|предложени\\p{L}*|zdani\\p{L}*'
const pointNouns =
  'bullets?|points?|takeaways|stichpunkten?|punkten?|puntos|punti|pontos|punten|lines|тезис\\p{L}*'
const wordNouns = 'words|wörtern?|worten|mots|palabras|parole|palavras|woorden|ord|слов\\p{L}*|słów|słowach'

const near = (nouns: string) => new RegExp(`(?<!\\p{L})${count}${between}(?:${nouns})(?!\\p{L})`, 'iu')
const sentencePattern = near(sentenceNouns)
const pointPattern = near(pointNouns)
const wordPattern = near(wordNouns)
const eastAsianPattern = /([1-9]\d?|[一二两三四五六七八九十])\s*(?:句|つの文|文で|문장)/u
const percentPattern = /(\d{1,2})\s?(?:%|percent|prozent|pour cent|por ciento)/iu
const bulletPattern =
  /bullet|stichpunkt|key points|main points|takeaways|as a list|points clés|puntos clave|тезис/iu
const paragraphPattern =
  /(?:one|a|single|short) paragraph|(?:einem|ein) absatz|un paragraphe|un párrafo|un paragrafo/iu
const briefPattern =
  /(?<!\p{L})(?:short|brief|briefly|concise|tl;?dr|kurz\p{L}*|knapp|bref|brève\p{L}*|brev[ei]|кратк\p{L}*)/iu
const longPattern =
  /(?<!\p{L})(?:detailed|in detail|thorough|long|ausführlich\p{L}*|détaillé\p{L}*|detallad\p{L}*|подробн\p{L}*)/iu

/** Parses “in 3 sentences”, “one sentence”, “at most 50 words”, “en tres frases” in an instruction. */
export function lengthWishOf(instruction: string): LengthWish {
  const bullets = bulletPattern.test(instruction) ? { bullets: true } : {}
  const words = numberIn(instruction, wordPattern, 5000)
  const sentences = numberIn(instruction, sentencePattern, 100) ?? eastAsianCount(instruction)
  const points = numberIn(instruction, pointPattern, 100)
  if (points !== undefined) return { sentences: points, bullets: true, ...(words ? { words } : {}) }
  if (sentences !== undefined || words !== undefined) {
    return { ...(sentences ? { sentences } : {}), ...(words ? { words } : {}), ...bullets }
  }
  const percent = percentPattern.exec(instruction)?.[1]
  if (percent !== undefined && Number(percent) > 0) return { ratio: Number(percent) / 100, ...bullets }
  if (paragraphPattern.test(instruction)) return { sentences: 4, ...bullets }
  if (briefPattern.test(instruction)) return { sentences: 2, ...bullets }
  if (longPattern.test(instruction)) return { sentences: 10, ...bullets }
  return bullets
}

/** Whether any option is set. */
export const isWish = (wish: LengthWish): boolean => Object.keys(wish).length > 0

/** Number of sentences to select from `available`. */
export function sentencesWanted(wish: LengthWish, available: number): number {
  if (wish.sentences !== undefined) return Math.min(wish.sentences, available)
  if (wish.ratio !== undefined) return Math.max(1, Math.min(100, Math.round(available * wish.ratio)))
  if (wish.words !== undefined) return Math.min(100, available)
  return Math.max(1, Math.min(7, Math.round(Math.sqrt(available))))
}

function numberIn(instruction: string, pattern: RegExp, most: number): number | undefined {
  const found = pattern.exec(instruction)?.[1]?.toLowerCase()
  if (found === undefined) return undefined
  const value = /^\d+$/.test(found) ? Number(found) : numberWords.get(found)
  return value === undefined || value < 1 ? undefined : Math.min(value, most)
}

function eastAsianCount(instruction: string): number | undefined {
  const found = eastAsianPattern.exec(instruction)?.[1]
  if (found === undefined) return undefined
  if (/^\d+$/.test(found)) return Number(found)
  const digit = '一二三四五六七八九十'.indexOf(found)
  return found === '两' ? 2 : digit + 1
}
