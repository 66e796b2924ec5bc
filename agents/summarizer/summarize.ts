import { breathOf } from './breath.ts'
import { type LengthWish, sentencesWanted } from './length-wish.ts'
import { rank, weigh } from './rank.ts'
import { select } from './select.ts'
import { type Sentence, sentencesOf } from './sentences.ts'
import { stopWordsFor, wordsOf } from './words.ts'

/** Maximum number of sentences to read. A text of 2 MB has about 20,000. */
const mostSentences = 40_000

/**
 * Yields the most important sentences of a text verbatim, in their order, with separators. Yields to the event loop while
 * it works.
 *
 * @throws the reason of the signal after it is aborted
 */
export async function* summarize(
  source: string,
  { wish = {}, signal }: { wish?: LengthWish; signal: AbortSignal },
): AsyncGenerator<string> {
  signal.throwIfAborted()
  const breathe = breathOf(signal)
  const { sentences, words } = await read(source, breathe)
  const frequency = new Map<string, number>()
  const sentencesWith = new Map<string, number>()
  for (const list of words) {
    for (const word of list) frequency.set(word, (frequency.get(word) ?? 0) + 1)
    for (const word of new Set(list)) sentencesWith.set(word, (sentencesWith.get(word) ?? 0) + 1)
    await breathe()
  }
  const stopWords = await stopWordsFor(frequency)
  const text = { stopWords, sentencesWith, sentences: sentences.length }
  const weighed = sentences.map((sentence, place) => weigh(sentence, words[place] ?? [], text))
  await breathe()
  const wanted = sentencesWanted(wish, sentences.length)
  const chosen = select(await rank(weighed, breathe), { sentences: wanted, words: wish.words })
  let before = ''
  for (const { text } of chosen) {
    signal.throwIfAborted()
    yield wish.bullets === true ? `${before && '\n'}- ${text}` : separator(before) + text
    before = text
  }
}

async function read(source: string, breathe: () => Promise<void> | undefined) {
  const sentences: Sentence[] = []
  const words: string[][] = []
  for (const sentence of sentencesOf(source)) {
    sentences.push(sentence)
    words.push(wordsOf(sentence.text))
    if (sentences.length === mostSentences) break
    await breathe()
  }
  return { sentences, words }
}

/** Chinese and Japanese have no separator between sentences. */
function separator(before: string): string {
  if (before === '') return ''
  return /[。！？」』）]$/u.test(before) ? '' : ' '
}
