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
  index.put(name, name, { name: agent.name, description, skills: agent.skills, queueDepth: 0, ...cost })
}

function chosenFor({ text, files = [] }: NaturalRequest): string | null {
  const types = [...(text === '' ? [] : ['text/plain']), ...files.map(({ type }) => type)]
  const { candidates } = index.rank(
    {
      taskSummary: text,
      inputMimeTypes: [...new Set(types)],
      weights: defaultWeights,
      minScore: routeMinScore,
    },
    { limit: 1 },
  )
  return candidates.find(({ canHandle }) => canHandle)?.id ?? null
}

function reads(agent: string, type: string): boolean {
  return (skills.get(agent) ?? []).some(({ inputModes }) => inputModes.some((mode) => modesMatch(mode, type)))
}

function isRight(request: NaturalRequest, chosen: string | null): boolean {
  const { agent, files = [] } = request
  if (chosen === agent) return true
  return chosen === null && agent !== null && files.some(({ type }) => !reads(agent, type))
}

const judged = requests.map((request) => {
  const chosen = chosenFor(request)
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
