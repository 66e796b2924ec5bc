/**
 * Quality of routing: `tools/bench/data/routing` (199 agents with one-line descriptions, 3,000 texts), a list of agents
 * with several skills, and whole tasks. Ranks first by words only, then with half of the texts as training examples,
 * then with texts that no agent of a reduced registry serves. The figures are the fractions of texts for which the
 * correct agent is first or among the first five.
 */
import { createHash } from 'node:crypto'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import { trainingWords } from '@parley/negotiation/score/learning'
import type { Offer } from '@parley/negotiation/score/offer'
import type { Weights } from '@parley/negotiation/score/weights'
import { defaultWeights, routeMinScore } from '@parley/negotiation/score/weights'
import { agents, numbersFrom, type Text, texts } from '../testing/routing-list.ts'
import { expectAtLeast, printTable, saveResults } from './support/report.ts'
import { offerOf, request, shuffled, wordsAlone } from './support/routing-data.ts'
import { specialists, wholeTasks } from './support/whole-tasks.ts'

const splits = [1, 2, 3, 4, 5]

function indexOf(offers: readonly Offer[]): AgentIndex {
  const index = new AgentIndex()
  for (const offer of offers) index.put(offer.name ?? '', (offer.name ?? '').toLowerCase(), offer)
  return index
}

function hits(index: AgentIndex, testTexts: readonly Text[]) {
  let first = 0
  let five = 0
  for (const { query, agent } of testTexts) {
    const place = index.rank(request(query), { limit: 5 }).candidates.findIndex(({ id }) => id === agent)
    if (place === 0) first += 1
    if (place >= 0) five += 1
  }
  return { first: first / testTexts.length, five: five / testTexts.length }
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

/** Adds completed tasks from thirty callers, each rated 5. */
function teach(index: AgentIndex, done: readonly Text[]): void {
  const at = Date.now()
  const lessons = done.map(({ query, agent }, number) => ({
    agent,
    context: `context-${number}`,
    caller: `caller-${number % 30}`,
    at,
    outcome: 1,
    words: trainingWords(query),
  }))
  index.learn(...lessons)
}

function learned() {
  const found = splits.map((seed) => {
    const mixed = shuffled(texts, numbersFrom(seed))
    const index = indexOf(agents.map(offerOf))
    teach(index, mixed.slice(0, 1500))
    return hits(index, mixed.slice(1500))
  })
  return { first: mean(found.map(({ first }) => first)), five: mean(found.map(({ five }) => five)) }
}

/**
 * The fraction of correct first places if the fraction `share` of the agents has training examples, for the texts of
 * these agents and of the others, before and after training.
 */
function someTaught(share: number) {
  const found = splits.map((seed) => {
    const mixed = shuffled(texts, numbersFrom(seed))
    const order = shuffled(agents, numbersFrom(seed + 200)).map(({ name }) => name)
    const trained = new Set(order.slice(0, Math.round(share * order.length)))
    const has = ({ agent }: Text) => trained.has(agent)
    const index = indexOf(agents.map(offerOf))
    const testTexts = mixed.slice(1500)
    const groups = [testTexts.filter(has), testTexts.filter((text) => !has(text)), testTexts]
    const before = groups.map((group) => hits(index, group).first)
    teach(index, mixed.slice(0, 1500).filter(has))
    return [...before, ...groups.map((group) => hits(index, group).first)]
  })
  const at = (place: number) => mean(found.map((figures) => figures[place] ?? 0))
  return {
    share,
    trained: { before: at(0), after: at(3) },
    newcomers: { before: at(1), after: at(4) },
    all: { before: at(2), after: at(5) },
  }
}

/** Measures whole tasks, with each agent's first task as a training example. The others need the agent's other skills. */
function wholeTasksLearned() {
  const first = wholeTasks.filter(
    ({ agent }, at) => wholeTasks.findIndex((one) => one.agent === agent) === at,
  )
  const others = wholeTasks.filter((task) => !first.includes(task))
  const index = indexOf(specialists)
  const before = hits(index, others)
  teach(index, first)
  const scores = others.map(({ query }) => bestScore(index, query, defaultWeights))
  const accepted = scores.filter((score) => score >= routeMinScore).length / scores.length
  return { texts: others.length, before, after: hits(index, others), accepted }
}

const bestScore = (index: AgentIndex, query: string, weights: Weights) => {
  const [top] = index.rank(request(query, weights), { limit: 1 }).candidates
  return top === undefined || top.subscores.skillMatch === 0 ? 0 : top.score
}

/** The score below which a fifth of the served texts is refused, and the fraction of the unserved texts below it. */
function atFourFifths(served: readonly number[], others: readonly number[]) {
  const threshold = served.toSorted((a, b) => a - b)[Math.floor(served.length * 0.2)] ?? 0
  return { threshold, refused: others.filter((score) => score < threshold).length / others.length }
}

/** Measures routing of complete tasks with all agents as candidates, and again without the agent that serves the task. */
function refusalOfWholeTasks(weights: Weights) {
  const everyone = indexOf(specialists)
  const served = wholeTasks.map(({ query }) => bestScore(everyone, query, weights))
  const others = wholeTasks.map(({ query, agent }) =>
    bestScore(indexOf(specialists.filter(({ name }) => name !== agent)), query, weights),
  )
  const at = {
    accepted: served.filter((score) => score >= routeMinScore).length / served.length,
    refused: others.filter((score) => score < routeMinScore).length / others.length,
  }
  return { ...atFourFifths(served, others), ...(weights === defaultWeights && { atTheDefault: at }) }
}

/**
 * The score below which a fifth of the served texts would be refused, and the fraction of the unserved texts that this
 * score would refuse.
 */
function refusal(weights: Weights, kept: number, trained: boolean) {
  const found = splits.map((seed) => {
    const names = new Set(
      shuffled(agents, numbersFrom(seed + 100))
        .slice(0, kept)
        .map(({ name }) => name),
    )
    const index = indexOf(agents.filter(({ name }) => names.has(name)).map(offerOf))
    const mixed = shuffled(texts, numbersFrom(seed))
    if (trained)
      teach(
        index,
        mixed.slice(0, 1500).filter(({ agent }) => names.has(agent)),
      )
    const testTexts = mixed.slice(1500, 2250)
    const best = ({ query }: Text) => bestScore(index, query, weights)
    const served = testTexts.filter(({ agent }) => names.has(agent)).map(best)
    const others = testTexts.filter(({ agent }) => !names.has(agent)).map(best)
    return atFourFifths(served, others)
  })
  return {
    threshold: mean(found.map(({ threshold }) => threshold)),
    refused: mean(found.map(({ refused }) => refused)),
  }
}

/** The first half of the texts. Weights were tuned on both halves, so an effect on only one of them is chance. */
const isFirstHalf = ({ agent }: Text) => ((createHash('sha256').update(agent).digest()[0] ?? 0) & 1) === 0

const all = indexOf(agents.map(offerOf))
const alone = hits(all, texts)
const firstHalf = hits(all, texts.filter(isFirstHalf))
const secondHalf = hits(
  all,
  texts.filter((text) => !isFirstHalf(text)),
)
const afterLearning = learned()
const whole = hits(indexOf(specialists), wholeTasks)
const partly = [0.1, 0.5, 0.9].map(someTaught)
const wholeLearned = wholeTasksLearned()
const share = (value: number) => value.toFixed(3)
printTable(
  ['', 'first', 'first five'],
  [
    ['words alone', share(alone.first), share(alone.five)],
    ['  texts of the first half of the agents', share(firstHalf.first), share(firstHalf.five)],
    ['  texts of the second half', share(secondHalf.first), share(secondHalf.five)],
    ['1,500 training examples, other texts', share(afterLearning.first), share(afterLearning.five)],
    [`${specialists.length} agents with several skills, whole tasks`, share(whole.first), share(whole.five)],
  ],
)
console.log()
printTable(
  ['trained agents', 'their texts first', 'other texts first', 'all', '(before training)'],
  partly.map(({ share: part, trained, newcomers, all: everyone }) => [
    part.toFixed(1),
    share(trained.after),
    share(newcomers.after),
    share(everyone.after),
    `${share(trained.before)}, ${share(newcomers.before)}, ${share(everyone.before)}`,
  ]),
)
const { after: wholeAfter, accepted } = wholeLearned
console.log(`whole tasks for untrained skills: ${share(wholeAfter.first)}, accepted ${share(accepted)}`)
const refusals = [10, 20, 50, 100].flatMap((kept) =>
  [false, true].flatMap((trained) =>
    [wordsAlone, defaultWeights].map((weights) => ({
      kept,
      trained,
      weights: weights === wordsAlone ? 'skill match only' : 'default',
      ...refusal(weights, kept, trained),
    })),
  ),
)
console.log()
printTable(
  ['refusal: agents kept, weights', 'trained', 'threshold', 'refused at 80 % accepted'],
  refusals.map(({ kept, trained, weights, threshold, refused }) => [
    `${kept}, ${weights}`,
    trained ? 'yes' : 'no',
    share(threshold),
    share(refused),
  ]),
)
const wholeRefusals = [wordsAlone, defaultWeights].map(refusalOfWholeTasks)
for (const { threshold, refused } of wholeRefusals) {
  console.log(
    `whole tasks: ${share(refused)} of the unserved refused below ${share(threshold)}, where 80 % of the served are accepted`,
  )
}
expectAtLeast('words only, first', alone.first, 0.46)
expectAtLeast('words only, first five', alone.five, 0.65)
expectAtLeast('trained, first', afterLearning.first, 0.682)
expectAtLeast('trained, first five', afterLearning.five, 0.867)
for (const { share: part, newcomers, trained } of partly) {
  expectAtLeast(
    `${part} of the agents trained: other texts, relative to before`,
    newcomers.after / newcomers.before,
    0.9,
  )
  expectAtLeast(
    `${part} of the agents trained: their texts, relative to before`,
    trained.after / trained.before,
    1,
  )
}
for (const { kept, trained, weights, refused } of refusals) {
  const lessons = trained ? ', trained' : ''
  expectAtLeast(`unserved refused: ${kept} agents${lessons}, ${weights}`, refused, 0.8)
}
for (const { refused } of wholeRefusals) expectAtLeast('unserved whole tasks refused', refused, 0.8)
await saveResults('routing', {
  alone,
  firstHalf,
  secondHalf,
  afterLearning,
  partly,
  wholeLearned,
  whole,
  refusals,
  wholeRefusals,
})
