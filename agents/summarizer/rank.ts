import type { Sentence } from './sentences.ts'

/** A sentence with the weights of its words as a vector; `norm` is its length. */
export interface Weighed extends Sentence {
  weights: ReadonlyMap<string, number>
  norm: number
  wordCount: number
}

export interface Ranked extends Weighed {
  /** Importance of the sentence, 0 to 1. */
  score: number
}

/** Maximum number of sentences compared in pairs. A linear measure selects the most central ones beforehand. */
const mostCompared = 400
const damping = 0.85
const similarEnough = 0.08

/** Weights words by tf–idf, without stop words. */
export function weigh(
  sentence: Sentence,
  words: string[],
  text: { stopWords: ReadonlySet<string>; sentencesWith: ReadonlyMap<string, number>; sentences: number },
): Weighed {
  const counts = new Map<string, number>()
  for (const word of words) {
    if (!text.stopWords.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  const weights = new Map<string, number>()
  for (const [word, count] of counts) {
    const rarity = Math.log(1 + text.sentences / (text.sentencesWith.get(word) ?? 1))
    weights.set(word, (1 + Math.log(count)) * rarity)
  }
  return { ...sentence, weights, norm: normOf(weights), wordCount: words.length }
}

/**
 * Ranks by LexRank (a sentence is important if important sentences resemble it), similarity to the whole text and
 * position. Deterministic; stops when `breathe` throws.
 */
export async function rank(all: Weighed[], breathe: () => Promise<void> | undefined): Promise<Ranked[]> {
  const centroid = await centroidOf(all, breathe)
  const central = all.map((sentence) => cosine(sentence, centroid))
  const kept = all
    .map((sentence, place) => ({ sentence, central: (central[place] ?? 0) * shape(sentence) }))
    .sort((a, b) => b.central - a.central || a.sentence.index - b.sentence.index)
    .slice(0, mostCompared)
    .sort((a, b) => a.sentence.index - b.sentence.index)
  const link = await linkRank(
    kept.map(({ sentence }) => sentence),
    breathe,
  )
  const mostLinked = Math.max(...link, Number.MIN_VALUE)
  const mostCentral = kept.reduce((most, { central }) => Math.max(most, central), Number.MIN_VALUE)
  return kept.map(({ sentence, central }, place) => {
    const linked = ((link[place] ?? 0) / mostLinked) * shape(sentence)
    const score = 0.5 * linked + 0.3 * (central / mostCentral) + 0.2 * lead(sentence, all.length)
    return { ...sentence, score }
  })
}

/** Similarity of two sentences, 0 to 1. */
export function cosine(a: Pick<Weighed, 'weights' | 'norm'>, b: Pick<Weighed, 'weights' | 'norm'>): number {
  if (a.norm === 0 || b.norm === 0) return 0
  const [small, large] = a.weights.size < b.weights.size ? [a, b] : [b, a]
  let product = 0
  for (const [word, weight] of small.weights) product += weight * (large.weights.get(word) ?? 0)
  return product / (a.norm * b.norm)
}

/** Penalizes very short and very long sentences, and questions. */
function shape({ wordCount, text }: Weighed): number {
  const length = wordCount < 6 ? wordCount / 8 : wordCount > 45 ? 45 / wordCount : 1
  return /[?？]["”»]?$/u.test(text) ? length * 0.6 : length
}

/** Favours sentences at the start of the text and of a paragraph. */
function lead({ index, inParagraph }: Weighed, sentences: number): number {
  const inText = 1 - index / Math.max(1, sentences)
  return 0.6 * inText * inText + (index === 0 ? 0.25 : 0) + (inParagraph === 0 ? 0.15 : 0)
}

async function centroidOf(all: Weighed[], breathe: () => Promise<void> | undefined) {
  const weights = new Map<string, number>()
  for (const sentence of all) {
    for (const [word, weight] of sentence.weights) weights.set(word, (weights.get(word) ?? 0) + weight)
    await breathe()
  }
  return { weights, norm: normOf(weights) }
}

async function linkRank(sentences: Weighed[], breathe: () => Promise<void> | undefined): Promise<number[]> {
  const links: { to: number; weight: number }[][] = sentences.map(() => [])
  for (const [a, one] of sentences.entries()) {
    for (let b = a + 1; b < sentences.length; b += 1) {
      const weight = cosine(one, sentences[b] as Weighed)
      if (weight < similarEnough) continue
      links[a]?.push({ to: b, weight })
      links[b]?.push({ to: a, weight })
    }
    await breathe()
  }
  const out = links.map((row) => row.reduce((sum, { weight }) => sum + weight, 0))
  let ranks = sentences.map(() => 1 / sentences.length)
  for (let round = 0; round < 30; round += 1) {
    const next = sentences.map(() => (1 - damping) / sentences.length)
    for (const [from, row] of links.entries()) {
      const share = (damping * (ranks[from] ?? 0)) / (out[from] || 1)
      for (const { to, weight } of row) next[to] = (next[to] ?? 0) + share * weight
    }
    ranks = next
    await breathe()
  }
  return ranks
}

function normOf(weights: ReadonlyMap<string, number>): number {
  let sum = 0
  for (const weight of weights.values()) sum += weight * weight
  return Math.sqrt(sum)
}
