import { cosine, type Ranked } from './rank.ts'

/** Weight of importance against redundancy. */
const worth = 0.55

export interface Bounds {
  sentences: number
  /** Maximum number of words; the first sentence is always included. */
  words?: number | undefined
}

/** Selects the best sentences that do not repeat each other (maximal marginal relevance), in the order of the text. */
export function select(ranked: Ranked[], bounds: Bounds): Ranked[] {
  const left = new Map(ranked.map((sentence) => [sentence, 0]))
  const chosen: Ranked[] = []
  let words = 0
  while (chosen.length < bounds.sentences && left.size > 0) {
    const next = best(left)
    left.delete(next)
    const fits = bounds.words === undefined || words + next.wordCount <= bounds.words
    if (!fits && (chosen.length > 0 || left.size > 0)) continue
    chosen.push(next)
    words += next.wordCount
    for (const [sentence, said] of left) left.set(sentence, Math.max(said, cosine(sentence, next)))
  }
  const shortest = chosen.length === 0 && ranked.length > 0 ? [ranked.reduce(shorter)] : []
  return [...chosen, ...shortest].sort((a, b) => a.index - b.index)
}

function best(left: ReadonlyMap<Ranked, number>): Ranked {
  let found: { sentence: Ranked; value: number } | undefined
  for (const [sentence, said] of left) {
    const value = worth * sentence.score - (1 - worth) * said
    if (found === undefined || value > found.value) found = { sentence, value }
  }
  return (found as { sentence: Ranked }).sentence
}

const shorter = (a: Ranked, b: Ranked): Ranked => (b.wordCount < a.wordCount ? b : a)
