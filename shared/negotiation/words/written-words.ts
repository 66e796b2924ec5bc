import { joinedWords } from './joined.ts'
import { stemOf, wordsIn } from './split.ts'

const shownMax = 40

/**
 * Maps each stem to the word as first written, for use in the reasons of a decision. Includes stop words. Reads the
 * first `charsMax` characters.
 */
export function writtenWords(text: string, charsMax: number): ReadonlyMap<string, string> {
  const written = new Map<string, string>()
  for (const [piece] of text.slice(0, charsMax).matchAll(/[\p{L}\p{N}\p{M}]+|\p{Extended_Pictographic}/gu)) {
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
