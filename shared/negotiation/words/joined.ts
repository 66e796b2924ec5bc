import { backgroundRarity, isEnglish } from './english.ts'
import { isStopWord, stemOf } from './split.ts'

const lettersMin = 7
const lettersMax = 30
const pieceMin = 3

/** Splits a compound such as `airquality` into words. Empty if it is a single word or cannot be split completely. */
export function joinedWords(word: string): string[] {
  if (word.length < lettersMin || word.length > lettersMax || !/^[a-z]+$/.test(word)) return []
  if (isEnglish(stemOf(word))) return []
  const best: ({ cost: number; parts: string[] } | undefined)[] = [{ cost: 0, parts: [] }]
  for (let end = 1; end <= word.length; end += 1) {
    for (let start = 0; start <= end - pieceMin; start += 1) {
      const before = best[start]
      const part = word.slice(start, end)
      if (before === undefined || !(isEnglish(stemOf(part)) || isStopWord(part))) continue
      const cost = before.cost + 1 + backgroundRarity(stemOf(part))
      const now = best[end]
      if (now === undefined || cost < now.cost) best[end] = { cost, parts: [...before.parts, part] }
    }
  }
  return best[word.length]?.parts ?? []
}
