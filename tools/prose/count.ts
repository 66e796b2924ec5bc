import { readFileSync } from 'node:fs'
import { countWords, type Kind, sentencesOf } from './passages.ts'
import { firstList, oddWords } from './words.ts'

export interface Hit {
  file: string
  line: number
  kind: Kind
  match: string
  sentence: string
  instead: string
}

export interface FileCount {
  file: string
  words: Record<Kind, number>
  hits: Hit[]
  /** Number of matches of the first, short list. */
  first: Record<Kind, number>
}

export interface Rate {
  words: number
  hits: number
  per10000: number
}

export const kinds: Kind[] = ['comments', 'texts', 'titles', 'markdown']

/** @throws Error if the source cannot be parsed */
export function countFile(file: string, source = readFileSync(file, 'utf8')): FileCount {
  const words: Record<Kind, number> = { comments: 0, texts: 0, titles: 0, markdown: 0 }
  const first: Record<Kind, number> = { comments: 0, texts: 0, titles: 0, markdown: 0 }
  const hits: Hit[] = []
  for (const { kind, text, offsets } of sentencesOf(file, source)) {
    words[kind] += countWords(text)
    first[kind] += text.match(firstList)?.length ?? 0
    let end = -1
    for (const { index, match, instead } of matchesIn(text)) {
      // Overlapping matches count once.
      if (index < end) continue
      end = index + match.length
      const line = source.slice(0, offsets[index]).split('\n').length
      hits.push({ file, line, kind, match, sentence: text, instead })
    }
  }
  return { file, words, hits, first }
}

/** Sums the words and hits of one kind. */
export function rateOf(counts: FileCount[], kind: Kind): Rate {
  const words = counts.reduce((sum, count) => sum + count.words[kind], 0)
  const hits = counts.reduce((sum, count) => sum + count.hits.filter((hit) => hit.kind === kind).length, 0)
  return { words, hits, per10000: words === 0 ? 0 : (hits / words) * 10_000 }
}

function matchesIn(text: string): { index: number; match: string; instead: string }[] {
  return oddWords
    .flatMap(({ pattern, instead }) =>
      [...text.matchAll(pattern)].map((match) => ({ index: match.index, match: match[0], instead })),
    )
    .sort((a, b) => a.index - b.index || b.match.length - a.match.length)
}
