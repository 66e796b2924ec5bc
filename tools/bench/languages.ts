/**
 * Requests in other languages (`tools/bench/data/languages`) to the 199 agents of `tools/bench/data/routing`, whose texts are English:
 * how many of 100 requests have the correct agent first and among the first five, by words only and with the sentence encoder, next to
 * the English originals. The English row by words only is what a perfect translation would give words.
 */
import { readFileSync } from 'node:fs'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import { languages } from '@parley/negotiation/words/function-words'
import { languageOf } from '@parley/negotiation/words/language'
import { inEnglish } from '@parley/negotiation/words/translation'
import { agents, texts } from '../testing/routing-list.ts'
import { closeEncoder, embedAgent, type Mode, optionsFor, prepare } from './support/meaning.ts'
import { expectAtLeast, printTable, saveResults } from './support/report.ts'
import { offerOf, request } from './support/routing-data.ts'

interface Translated {
  /** The line of the original in `queries.jsonl`, from 0. */
  n: number
  language: string
  text: string
}

const translated = readFileSync(new URL('./data/languages/requests.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Translated)
const numbers = [...new Set(translated.map(({ n }) => n))]
const originals = numbers.map((n) => ({ n, language: 'en', text: texts[n]?.query ?? '' }))

const index = new AgentIndex()
for (const agent of agents) {
  const offer = offerOf(agent)
  index.put(agent.name, agent.name.toLowerCase(), offer)
  await embedAgent(index, agent.name, offer)
}
await prepare([...originals, ...translated].map(({ text }) => text))

function hits(requests: readonly Translated[], mode: Mode) {
  let first = 0
  let five = 0
  for (const { n, text } of requests) {
    const { candidates } = index.rank(request(text), { ...optionsFor(text, mode), limit: 5 })
    const place = candidates.findIndex(({ id }) => id === texts[n]?.agent)
    if (place === 0) first += 1
    if (place >= 0) five += 1
  }
  return { first, five }
}

const groups = [
  { language: 'en', requests: originals },
  ...languages.map((language) => ({
    language,
    requests: translated.filter((one) => one.language === language),
  })),
]
const results = groups.map(({ language, requests }) => ({
  language,
  recognised: requests.filter(({ text }) => (languageOf(text) ?? 'en') === language).length,
  words: hits(requests, 'words'),
  meaning: hits(requests, 'meaning'),
}))
await closeEncoder()

printTable(
  ['language', 'recognised', 'words: first', 'first five', 'with the encoder: first', 'first five'],
  results.map(({ language, recognised, words, meaning }) =>
    [language, recognised, words.first, words.five, meaning.first, meaning.five].map(String),
  ),
)
const changed = texts.filter(({ query }) => inEnglish(query) !== query).length
console.log(`\nEnglish requests that are taken for another language: ${changed} of ${texts.length}`)

const english = hits(originals, 'words')
for (const { language, words, meaning } of results) {
  if (language === 'en') continue
  expectAtLeast(`${language}, words: first`, words.first, 43)
  expectAtLeast(`${language}, words: first five`, words.five, 64)
  // As good as a perfect translation would be for words.
  expectAtLeast(`${language}, with the encoder: first`, meaning.first, english.first)
  expectAtLeast(`${language}, with the encoder: first five`, meaning.five, english.five)
}
expectAtLeast('English requests left unchanged', texts.length - changed, 2995)
await saveResults('languages', { results, changed })
