import { agents, skillOf, type Text, texts } from '@parley/tools/testing/routing-list'
import { expect, test } from 'vitest'
import { trainingWords } from '../score/learning.ts'
import { queryOf } from '../score/query.ts'
import { defaultWeights } from '../score/weights.ts'
import { AgentIndex } from './agent-index.ts'
import { FeedbackModel } from './feedback-model.ts'
import { vectorText } from './vector-store.ts'

const at = 1_800_000_000_000
const request = (taskSummary: string) => ({ taskSummary, weights: defaultWeights })

function registry(): AgentIndex {
  const index = new AgentIndex({ now: () => at })
  for (const { name, description } of agents) {
    index.put(name, name.toLowerCase(), { name, description, skills: [skillOf(name)], queueDepth: 0 })
  }
  return index
}

function teach(index: AgentIndex, done: readonly Text[]): void {
  const examples = done.map(({ query, agent }, number) => ({
    agent,
    context: `c-${number}`,
    caller: `caller-${number % 30}`,
    at,
    outcome: 1,
    words: trainingWords(query),
  }))
  index.learn(...examples)
}

const fiveTimes = (query: string, agent: string): Text[] =>
  Array.from({ length: 5 }, () => ({ query, agent }))

const firstIn = (index: AgentIndex, asked: readonly Text[]) =>
  asked.filter(({ query, agent }) => index.rank(request(query), { limit: 1 }).candidates[0]?.id === agent)
    .length

const feedback = new Set(agents.filter((_, at) => at % 2 === 0).map(({ name }) => name))
const isTaught = ({ agent }: Text) => feedback.has(agent)

test('if half of the agents have examples, requests still find the untrained agents and find the trained ones more often', () => {
  const index = registry()
  const done = texts.slice(0, 1500).filter(isTaught)
  const known = texts.slice(1500).filter(isTaught).slice(0, 60)
  const fresh = texts
    .slice(1500)
    .filter((text) => !isTaught(text))
    .slice(0, 60)
  const before = { known: firstIn(index, known), fresh: firstIn(index, fresh) }
  teach(index, done)
  expect(firstIn(index, fresh) / before.fresh).toBeGreaterThan(0.78)
  expect(firstIn(index, known) / before.known).toBeGreaterThan(1.2)
})

test('an agent without examples gets at most the evidence that examples of others give for the text, and the reasons mention it', () => {
  const index = registry()
  const [newcomer] = agents.filter(({ name }) => !feedback.has(name))
  const text = request(newcomer?.description ?? '')
  const matchOf = () => index.rank(text).candidates.find(({ id }) => id === newcomer?.name)
  const before = matchOf()
  expect(before?.reasons.join()).not.toContain('no ratings')
  teach(index, [{ query: 'zzqx wvkj', agent: agents[0]?.name ?? '' }])
  expect(matchOf()?.score).toBeCloseTo(before?.score ?? 0, 3)
  teach(index, texts.slice(0, 2000).filter(isTaught))
  expect(matchOf()?.reasons).toContain('no ratings for such tasks yet: its description counts more')
})

test('an agent is ranked by its current description, even if it had another one when it was trained', () => {
  const said = (name: string) => {
    const index = new AgentIndex({ now: () => at })
    index.put('1', 'one', { name, skills: [skillOf(name)], queueDepth: 0 })
    return index
  }
  const [changed, fresh] = [said('Opera'), said('Bicycle')]
  teach(changed, fiveTimes('sell tickets', '1'))
  changed.put('1', 'one', { name: 'Bicycle', skills: [skillOf('Bicycle')], queueDepth: 0 })
  teach(fresh, fiveTimes('sell tickets', '1'))
  for (const text of ['opera tickets', 'bicycle', 'tickets']) {
    expect(changed.rank(request(text)).candidates).toEqual(fresh.rank(request(text)).candidates)
  }
})

/** A vector of length 1 in the plane of two dimensions. */
function direction(degrees: number): Float32Array {
  const vector = new Float32Array(384)
  vector.set([Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)])
  return vector
}

const rated = (caller: number) => ({
  agent: '1',
  context: `c-${caller}`,
  caller: `caller-${caller}`,
  at,
  outcome: 1,
  words: { [`detail${caller}`]: 1 },
  vector: vectorText(direction(0)),
})

/** The match of agent 1 with a request in the direction of its examples, after some steps. */
function matches(steps: (index: AgentIndex, textsAt: (degrees: number) => void) => void): number {
  const index = new AgentIndex({ now: () => at })
  index.put('1', 'one', { name: 'Opera', skills: [skillOf('Opera')], queueDepth: 0 })
  const textsAt = (degrees: number) =>
    index.setVectors('1', { skills: [{ text: direction(degrees), examples: [] }] })
  steps(index, textsAt)
  const meaning = { whole: direction(0), parts: [], background: 0 }
  return index.rank(request('tickets'), { meaning }).candidates[0]?.exactScore ?? 0
}

const learnAll = (index: AgentIndex) =>
  index.learn(...Array.from({ length: 8 }, (_, caller) => rated(caller)))

test('an example that is far from the texts of its agent is more evidence than one that repeats them', () => {
  const evidenceIf = (near: number, outcome = 1) => {
    const model = new FeedbackModel({ now: () => at, ownTextsOf: () => () => near })
    model.learn(...Array.from({ length: 8 }, (_, caller) => ({ ...rated(caller), outcome })))
    return model.valuesFor(queryOf(request('tickets')), direction(30)).evidence[0] ?? 0
  }
  expect(evidenceIf(0.2)).toBeGreaterThan(1.3 * evidenceIf(0.8))
  expect(evidenceIf(0.8)).toBeGreaterThan(0)
  expect(evidenceIf(-0.5)).toBe(evidenceIf(0.2))
  expect(evidenceIf(0.8, -1)).toBe(evidenceIf(0.2, -1))
  expect(evidenceIf(0.8, -1)).toBeLessThan(-evidenceIf(0.8) / 2)
})

test('examples are compared with the current texts of their agent, whenever these were embedded', () => {
  const inOrder = matches((index, textsAt) => {
    textsAt(10)
    learnAll(index)
  })
  const embeddedLater = matches((index, textsAt) => {
    learnAll(index)
    index.rank(request('tickets'), { meaning: { whole: direction(0), parts: [], background: 0 } })
    textsAt(80)
    index.rank(request('tickets'), { meaning: { whole: direction(0), parts: [], background: 0 } })
    textsAt(10)
  })
  expect(embeddedLater).toBe(inOrder)
})
