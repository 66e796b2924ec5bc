import { joinedWords } from './joined.ts'
import { stemOf, wordsIn } from './split.ts'
import { foreignWordsOf, inEnglish } from './translation.ts'

const shownMax = 40

/**
 * Maps each stem to the word as first written, for use in the reasons of a decision. The stems are English, also if the text is in
 * another language. Includes stop words. Reads the first `charsMax` characters.
 */
export function writtenWords(text: string, charsMax: number): ReadonlyMap<string, string> {
  const read = text.slice(0, charsMax)
  const written = englishWords(inEnglish(read))
  for (const [english, foreign] of foreignWordsOf(read)) {
    for (const stem of englishWords(english).keys()) written.set(stem, foreign.slice(0, shownMax))
  }
  return written
}

/** Whether a written word contains the stem, rather than being translated by it. */
export const contains = (word: string, stem: string): boolean => englishWords(word).has(stem)

function englishWords(text: string): Map<string, string> {
  const written = new Map<string, string>()
  for (const [piece] of text.matchAll(/[\p{L}\p{N}\p{M}]+|\p{Extended_Pictographic}/gu)) {
    const words = wordsIn(piece, shownMax)
    for (const word of words) {
      // A piece with several words is in camelCase or in a script without spaces.
      const shown = words.length === 1 ? piece.slice(0, shownMax) : word
      for (const part of [word, ...joinedWords(word)]) {
        const stem = stemOf(part)
        if (!written.has(stem)) written.set(stem, shown)
      }
    }
  }
  return written
}
