/**
 * Quality of routing (docs/routing.md): `tools/bench/data/routing` (199 agents with one-line descriptions, 3,000 texts), requests for several tools of 811
 * (`tools/bench/data/tools`), and whole tasks for agents with several skills. Ranks by words only and with the sentence encoder: with nothing learned, after
 * 1,500 rated tasks, with texts that no agent of a reduced registry serves, and next to baselines. The figures are the fractions of texts for
 * which the correct agent is first or among the first five.
 */
import { readFileSync } from 'node:fs'
import { covering, needRequests, servedNeeds } from '@parley/gateway/routing/negotiation/needs'
import type { AgentIndex } from '@parley/negotiation/index/agent-index'
import type { Offer } from '@parley/negotiation/score/offer'
import { stemOf, wordsIn } from '@parley/negotiation/words/split'
import { agents, numbersFrom, skillOf, type Text, texts } from '../testing/routing-list.ts'
import { closeEncoder, type Mode, optionsFor, prepare } from './support/meaning.ts'
import { indexOf, reducedRegistry, teach } from './support/registries.ts'
import { expectAtLeast, printTable, saveResults } from './support/report.ts'
import { offerOf, request, shuffled } from './support/routing-data.ts'
import { specialists, wholeTasks } from './support/whole-tasks.ts'

const splits = [1, 2, 3, 4, 5]
const modes = ['words', 'meaning'] as const
const share = (value: number) => value.toFixed(3)
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

interface Hits {
  first: number
  five: number
}

function hitsOf(testTexts: readonly Text[], fiveFor: (query: string) => readonly string[]): Hits {
  const places = testTexts.map(({ query, agent }) => fiveFor(query).indexOf(agent))
  return {
    first: places.filter((place) => place === 0).length / places.length,
    five: places.filter((place) => place >= 0).length / places.length,
  }
}

const fiveOf = (index: AgentIndex, mode: Mode) => (query: string) =>
  index.rank(request(query), { limit: 5, ...optionsFor(query, mode) }).candidates.map(({ id }) => id)

const hits = (index: AgentIndex, testTexts: readonly Text[], mode: Mode) =>
  hitsOf(testTexts, fiveOf(index, mode))

/** Ranks by the fraction of shared words (Jaccard). */
function jaccard(): (query: string) => string[] {
  const bags = agents.map(({ name, description }) => ({ name, words: bagOf(`${name} ${description}`) }))
  return (query) => {
    const asked = bagOf(query)
    return bestFive(bags, ({ words }) => {
      const shared = [...asked].filter((word) => words.has(word)).length
      return shared / (asked.size + words.size - shared)
    })
  }
}

const bagOf = (text: string) => new Set(wordsIn(text, 1000).map(stemOf))

/** Ranks by plain BM25 with the usual constants. */
function bm25(): (query: string) => string[] {
  const documents = agents.map(({ name, description }) => {
    const words = wordsIn(`${name} ${description}`, 1000).map(stemOf)
    return { name, length: words.length, counts: Map.groupBy(words, (word) => word) }
  })
  const usual = mean(documents.map(({ length }) => length))
  const [saturation, lengthShare] = [1.2, 0.75]
  return (query) => {
    const asked = [...bagOf(query)]
    const rarity = new Map(
      asked.map((word) => {
        const holders = documents.filter(({ counts }) => counts.has(word)).length
        return [word, Math.log(1 + (documents.length - holders + 0.5) / (holders + 0.5))]
      }),
    )
    return bestFive(documents, ({ counts, length }) =>
      asked.reduce((sum, word) => {
        const count = counts.get(word)?.length ?? 0
        const scale = saturation * (1 - lengthShare + (lengthShare * length) / usual)
        return sum + ((rarity.get(word) ?? 0) * count * (saturation + 1)) / (count + scale)
      }, 0),
    )
  }
}

function bestFive<T extends { name: string }>(all: readonly T[], scoreOf: (one: T) => number): string[] {
  return all
    .map((one) => ({ name: one.name, score: scoreOf(one) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, 5)
    .map(({ name }) => name)
}

/** After 1,500 rated tasks, measured with the other texts. */
async function learned(mode: Mode): Promise<Hits> {
  const found: Hits[] = []
  for (const seed of splits) {
    const mixed = shuffled(texts, numbersFrom(seed))
    const index = await indexOf(agents.map(offerOf), mode)
    teach(index, mixed.slice(0, 1500), mode)
    found.push(hits(index, mixed.slice(1500), mode))
  }
  return { first: mean(found.map(({ first }) => first)), five: mean(found.map(({ five }) => five)) }
}

/** The fraction of correct first places if only some agents have examples, for their texts and for others, relative to before. */
async function someTaught(part: number, mode: Mode) {
  const found: number[][] = []
  for (const seed of splits.slice(0, 3)) {
    const mixed = shuffled(texts, numbersFrom(seed))
    const order = shuffled(agents, numbersFrom(seed + 200)).map(({ name }) => name)
    const trained = new Set(order.slice(0, Math.round(part * order.length)))
    const has = ({ agent }: Text) => trained.has(agent)
    const index = await indexOf(agents.map(offerOf), mode)
    const groups = [mixed.slice(1500).filter(has), mixed.slice(1500).filter((text) => !has(text))]
    const before = groups.map((group) => hits(index, group, mode).first)
    teach(index, mixed.slice(0, 1500).filter(has), mode)
    found.push(groups.map((group, at) => hits(index, group, mode).first / (before[at] ?? 1)))
  }
  return {
    trained: mean(found.map(([first = 0]) => first)),
    others: mean(found.map(([, second = 0]) => second)),
  }
}

interface ToolRequest {
  query: string
  tools: string[]
}

const toolData = (name: string) => readFileSync(new URL(`./data/tools/${name}`, import.meta.url), 'utf8')
const toolRequests = toolData('queries.jsonl')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as ToolRequest)
const tools: Offer[] = (
  JSON.parse(toolData('agents.json')) as { name: string; skills: { name: string; description: string }[] }[]
).map(({ name, skills }) => ({
  name,
  description: '',
  queueDepth: 0,
  skills: skills.map((skill) => skillOf(skill.name, skill.description)),
}))

/** The fraction of needed tools among the first five, by the whole text, and with the agents of its parts as the gateway lists them. */
async function severalNeeds(mode: Mode) {
  const index = await indexOf(tools, mode)
  const shareIn = (fiveFor: (query: string) => readonly string[]) =>
    mean(
      toolRequests.map(({ query, tools: needed }) => {
        const five = fiveFor(query)
        return needed.filter((tool) => five.includes(tool)).length / needed.length
      }),
    )
  return { whole: shareIn(fiveOf(index, mode)), covered: shareIn(coveringFiveOf(index, mode)) }
}

const coveringFiveOf = (index: AgentIndex, mode: Mode) => (query: string) => {
  const rank = (text: string, limit: number) =>
    index.rank(request(text), { limit, ...optionsFor(text, mode) }).candidates
  const needs = needRequests(request(query)).map(({ taskSummary: text }) => {
    const able = rank(text, 10).filter(({ canHandle }) => canHandle)
    return { text, able }
  })
  const places = { wholes: [], limit: 5 }
  return covering(rank(query, 5), servedNeeds(needs), places).map(({ id }) => id)
}

const bestMatch = (index: AgentIndex, query: string, mode: Mode) =>
  index.rank(request(query), { limit: 1, ...optionsFor(query, mode) }).candidates[0]?.exactScore ?? 0

/** The fraction of unserved texts below the score that four fifths of the served texts reach. */
function atFourFifths(served: readonly number[], others: readonly number[]): number {
  const threshold = served.toSorted((a, b) => a - b)[Math.floor(served.length * 0.2)] ?? 0
  return others.filter((score) => score < threshold).length / others.length
}

async function refusal(kept: number, trained: boolean, mode: Mode): Promise<number> {
  const found: number[] = []
  for (const seed of splits) {
    const { index, served, others } = await reducedRegistry(kept, seed, trained, mode)
    const best = ({ query }: Text) => bestMatch(index, query, mode)
    found.push(atFourFifths(served.map(best), others.map(best)))
  }
  return mean(found)
}

await prepare([...texts, ...toolRequests, ...wholeTasks].map(({ query }) => query))
await prepare(
  toolRequests.flatMap(({ query }) => needRequests(request(query)).map(({ taskSummary }) => taskSummary)),
)
const baselines = { jaccard: hitsOf(texts, jaccard()), bm25: hitsOf(texts, bm25()) }
const found: Record<
  Mode,
  {
    alone: Hits
    learned: Hits
    tools: { whole: number; covered: number }
    whole: Hits
    refused: number[]
    refusedTrained: number[]
  }
> = {
  words: await measured('words'),
  meaning: await measured('meaning'),
}
const sizes = [10, 20, 50, 100]

async function measured(mode: Mode) {
  const alone = hits(await indexOf(agents.map(offerOf), mode), texts, mode)
  const whole = hits(await indexOf(specialists, mode), wholeTasks, mode)
  const refused: number[] = []
  const refusedTrained: number[] = []
  for (const kept of [10, 20, 50, 100]) {
    refused.push(await refusal(kept, false, mode))
    refusedTrained.push(await refusal(kept, true, mode))
  }
  return {
    alone,
    learned: await learned(mode),
    tools: await severalNeeds(mode),
    whole,
    refused,
    refusedTrained,
  }
}

printTable(
  ['ranking', 'first', 'first five'],
  [
    ['Jaccard', share(baselines.jaccard.first), share(baselines.jaccard.five)],
    ['BM25', share(baselines.bm25.first), share(baselines.bm25.five)],
    ...modes.flatMap((mode) => [
      [`${mode}, nothing learned`, share(found[mode].alone.first), share(found[mode].alone.five)],
      [`${mode}, after 1,500 rated tasks`, share(found[mode].learned.first), share(found[mode].learned.five)],
      [
        `${mode}, whole tasks, ${specialists.length} agents`,
        share(found[mode].whole.first),
        share(found[mode].whole.five),
      ],
      [`${mode}, several needs of 811 tools, by the whole text`, '', share(found[mode].tools.whole)],
      [
        `${mode}, several needs of 811 tools, with the agents of the parts`,
        '',
        share(found[mode].tools.covered),
      ],
    ]),
  ],
)
console.log('\nrefused of the unserved texts where 80 % of the served ones are accepted')
printTable(
  ['ranking', ...sizes.map((size) => `${size} agents`)],
  modes.flatMap((mode) => [
    [mode, ...found[mode].refused.map(share)],
    [`${mode}, trained`, ...found[mode].refusedTrained.map(share)],
  ]),
)
const partly = await Promise.all(
  [0.1, 0.5, 0.9].map(async (part) => ({ part, ...(await someTaught(part, 'meaning')) })),
)
console.log('\nwith examples for a fraction of the agents: first places relative to before')
printTable(
  ['fraction', 'texts of these agents', 'other texts'],
  partly.map(({ part, trained, others }) => [String(part), share(trained), share(others)]),
)
expectAtLeast('words only, first', found.words.alone.first, 0.49)
expectAtLeast('words only, first five', found.words.alone.five, 0.72)
expectAtLeast('with the encoder, first', found.meaning.alone.first, 0.6)
expectAtLeast('with the encoder, first five', found.meaning.alone.five, 0.8)
expectAtLeast('after 1,500 rated tasks, first', found.meaning.learned.first, 0.74)
expectAtLeast('after 1,500 rated tasks, first five', found.meaning.learned.five, 0.91)
expectAtLeast(
  'several needs, in five, more than words',
  found.meaning.tools.covered - found.words.tools.whole,
  0.08,
)
sizes.forEach((size, at) => {
  const least = [0.88, 0.73, 0.68, 0.57][at] ?? 0
  expectAtLeast(`unserved refused, ${size} agents`, found.meaning.refused[at] ?? 0, least)
})
for (const { part, others, trained } of partly) {
  expectAtLeast(`${part} of the agents trained: other texts, relative to before`, others, 0.9)
  expectAtLeast(`${part} of the agents trained: their texts, relative to before`, trained, 1)
}
await saveResults('routing', { baselines, ...found, partly })
await closeEncoder()
