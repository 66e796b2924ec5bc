/**
 * Requests to the bundled agents (`tools/bench/data/natural`), ranked with the default weights and the default minimum: the share
 * that goes to the right agent or is rightly refused. The texts of held-out requests are not printed.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { loadAgent } from '@parley/agent/internal/author/load-agent'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import type { OfferedSkill } from '@parley/negotiation/score/offer'
import { defaultWeights, routeMinScore } from '@parley/negotiation/score/weights'
import { modesMatch } from '@parley/wire/model/mime'
import { closeEncoder, embedAgent, type Mode, optionsFor, prepare } from './support/meaning.ts'
import { percent, printTable, saveResults } from './support/report.ts'

interface NaturalRequest {
  id: number
  text: string
  files?: { name: string; type: string }[]
  /** Null if no agent serves the request. */
  agent: string | null
  heldOut: boolean
}

const requests = readFileSync(new URL('./data/natural/requests.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as NaturalRequest)
const agentsFolder = path.join(import.meta.dirname, '../../agents')
const names = ['calculator', 'data-analyst', 'document-maker', 'forecaster', 'summarizer']

const index = new AgentIndex()
const skills = new Map<string, readonly OfferedSkill[]>()
for (const name of names) {
  const agent = await loadAgent(path.join(agentsFolder, name))
  const price = agent.executionCost?.[0]
  skills.set(name, agent.skills)
  const { description } = agent
  const cost = price === undefined ? {} : { price: { amount: price.amount } }
  const offer = { name: agent.name, description, skills: agent.skills, queueDepth: 0, ...cost }
  index.put(name, name, offer)
  await embedAgent(index, name, offer)
}
await prepare(requests.map(({ text }) => text))

function rankingOf({ text, files = [] }: NaturalRequest, mode: Mode) {
  const types = [...(text === '' ? [] : ['text/plain']), ...files.map(({ type }) => type)]
  return index.rank(
    {
      taskSummary: text,
      inputMimeTypes: [...new Set(types)],
      weights: defaultWeights,
      minScore: routeMinScore,
    },
    { limit: 5, ...optionsFor(text, mode) },
  ).candidates
}

const chosenFor = (request: NaturalRequest, mode: Mode): string | null =>
  rankingOf(request, mode).find(({ canHandle }) => canHandle)?.id ?? null

function reads(agent: string, type: string): boolean {
  return (skills.get(agent) ?? []).some(({ inputModes }) => inputModes.some((mode) => modesMatch(mode, type)))
}

function isRight(request: NaturalRequest, chosen: string | null): boolean {
  const { agent, files = [] } = request
  if (chosen === agent) return true
  return chosen === null && agent !== null && files.some(({ type }) => !reads(agent, type))
}

const judged = requests.map((request) => {
  const chosen = chosenFor(request, 'meaning')
  return { ...request, chosen, right: isRight(request, chosen) }
})
const wrong = judged.filter(({ right, heldOut }) => !right && !heldOut)
printTable(
  ['text', 'agent', 'chosen'],
  wrong.map(({ text, agent, chosen }) => [JSON.stringify(text.slice(0, 80)), agent ?? '–', chosen ?? '–']),
)
const shareOf = (all: typeof judged) => all.filter(({ right }) => right).length / all.length
const shares = {
  known: shareOf(judged.filter(({ heldOut }) => !heldOut)),
  heldOut: shareOf(judged.filter(({ heldOut }) => heldOut)),
  all: shareOf(judged),
}
console.log()
printTable(
  ['requests', 'right'],
  [
    ['seen while developing', percent(shares.known)],
    ['held out', percent(shares.heldOut)],
    ['all', percent(shares.all)],
  ],
)
await saveResults('natural', shares)
