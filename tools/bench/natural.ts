/**
 * Requests to the bundled agents (`tools/bench/data/natural`), ranked with the default weights and the default minimum: the share
 * that goes to the right agent or is rightly refused, by words only and with the encoder, before and after 200 tasks of other requests in random orders.
 * The texts of held-out requests are not printed. Then 60 further requests, on which nothing was tuned.
 */
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import { trainingWords } from '@parley/negotiation/score/learning'
import { defaultWeights, routeMinScore } from '@parley/negotiation/score/weights'
import { modesMatch } from '@parley/wire/model/mime'
import {
  bundledOffers,
  furtherRequests,
  type NaturalRequest,
  naturalRequests,
  typesOf,
} from '../testing/natural-requests.ts'
import { numbersFrom } from '../testing/routing-list.ts'
import { closeEncoder, embedAgent, exampleVector, type Mode, optionsFor, prepare } from './support/meaning.ts'
import { expectAtLeast, percent, printTable, saveResults } from './support/report.ts'

const orders = 20
const tasks = 200
const offers = await bundledOffers()
await prepare([...naturalRequests, ...furtherRequests].map(({ text }) => text))

async function newIndex(mode: Mode): Promise<AgentIndex> {
  const index = new AgentIndex()
  for (const [name, offer] of offers) {
    index.put(name, name, offer)
    if (mode === 'meaning') await embedAgent(index, name, offer)
  }
  return index
}

function chosenFor(index: AgentIndex, request: NaturalRequest, mode: Mode): string | null {
  const { candidates } = index.rank(
    {
      taskSummary: request.text,
      inputMimeTypes: typesOf(request),
      weights: defaultWeights,
      minScore: routeMinScore,
    },
    { limit: 1, ...optionsFor(request.text, mode) },
  )
  return candidates.find(({ canHandle }) => canHandle)?.id ?? null
}

const reads = (agent: string, type: string): boolean =>
  offers.get(agent)?.skills.some(({ inputModes }) => inputModes.some((mode) => modesMatch(mode, type))) ===
  true

function isRight(request: NaturalRequest, chosen: string | null): boolean {
  const { agent, files = [] } = request
  if (chosen === agent) return true
  return chosen === null && agent !== null && files.some(({ type }) => !reads(agent, type))
}

/** 200 tasks of random requests, of which callers rate three in five, and correct one in two that went wrong. */
function replay(index: AgentIndex, seed: number, mode: Mode): void {
  const next = numbersFrom(seed)
  for (let number = 0; number < tasks; number += 1) {
    const request = naturalRequests[Math.floor(next() * naturalRequests.length)] as NaturalRequest
    const chosen = chosenFor(index, request, mode)
    if (chosen === null || next() < 0.4) continue
    const example = {
      context: `c${number}`,
      caller: `caller-${number % 8}`,
      at: Date.now(),
      words: trainingWords(request.text),
      ...exampleVector(request.text, mode),
    }
    const right = chosen === request.agent
    index.learn({ ...example, agent: chosen, outcome: right ? 1 : -1 })
    if (!right && request.agent !== null && next() < 0.5)
      index.learn({ ...example, agent: request.agent, outcome: 1 })
  }
}

const judge = (index: AgentIndex, mode: Mode, requests = naturalRequests) =>
  requests.map((request) => {
    const chosen = chosenFor(index, request, mode)
    return { ...request, chosen, right: isRight(request, chosen) }
  })

const shareOf = (all: ReturnType<typeof judge>) => all.filter(({ right }) => right).length / all.length
const sharesOf = (judged: ReturnType<typeof judge>) => ({
  known: shareOf(judged.filter(({ heldOut }) => !heldOut)),
  heldOut: shareOf(judged.filter(({ heldOut }) => heldOut)),
  all: shareOf(judged),
})

const further: Record<string, number> = {}
const results: Record<string, ReturnType<typeof sharesOf>> = {}
for (const mode of ['words', 'meaning'] as const) {
  const judged = judge(await newIndex(mode), mode)
  results[mode] = sharesOf(judged)
  further[mode] = shareOf(judge(await newIndex(mode), mode, furtherRequests))
  const after: ReturnType<typeof sharesOf>[] = []
  for (let seed = 1; seed <= orders; seed += 1) {
    const index = await newIndex(mode)
    replay(index, seed, mode)
    after.push(sharesOf(judge(index, mode)))
  }
  const worst = (of: (shares: ReturnType<typeof sharesOf>) => number) => Math.min(...after.map(of))
  results[`${mode}, after 200 tasks, worst order`] = {
    known: worst(({ known }) => known),
    heldOut: worst(({ heldOut }) => heldOut),
    all: worst(({ all }) => all),
  }
  if (mode === 'words') continue
  const wrong = judged.filter(({ right, heldOut }) => !right && !heldOut)
  printTable(
    ['text', 'agent', 'chosen'],
    wrong.map(({ text, agent, chosen }) => [JSON.stringify(text.slice(0, 80)), agent ?? '–', chosen ?? '–']),
  )
}
console.log()
printTable(
  ['right', 'seen while developing', 'held out', 'all'],
  Object.entries(results).map(([name, { known, heldOut, all }]) => [
    name,
    percent(known),
    percent(heldOut),
    percent(all),
  ]),
)
expectAtLeast('natural requests, with the encoder', results['meaning']?.all ?? 0, 0.95)
expectAtLeast(
  'natural requests, with the encoder, after any order of 200 tasks',
  results['meaning, after 200 tasks, worst order']?.all ?? 0,
  0.95,
)
console.log(
  `60 further requests, never looked at: ${percent(further['meaning'] ?? 0)}, by words only ${percent(further['words'] ?? 0)}`,
)
await saveResults('natural', { results, further })
await closeEncoder()
