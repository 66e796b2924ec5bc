import { bundledOffers, naturalRequests, typesOf } from '@parley/tools/testing/natural-requests'
import { agents, numbersFrom, skillOf, texts } from '@parley/tools/testing/routing-list'
import { describe, expect, test } from 'vitest'
import { trainingWords } from '../score/learning.ts'
import type { Offer } from '../score/offer.ts'
import type { TrainingExample } from '../score/training-example.ts'
import { defaultWeights, routeMinScore } from '../score/weights.ts'
import { AgentIndex, type RankOptions } from './agent-index.ts'
import type { AgentVectors } from './skill-vectors.ts'

/** A recorded task: the request, and the agent that would be right. */
interface Recorded {
  text: string
  types: string[]
  agent: string
}

/** How a replay compares texts. By default by words only. */
export interface Replay {
  /** Number of shuffled sessions. */
  shuffles: number
  optionsFor?: (text: string) => RankOptions
  /** The sentence vector of a text, as training examples store it. */
  exampleVector?: (text: string) => Pick<TrainingExample, 'vector'>
  vectorsOf?: (agent: string) => AgentVectors | undefined
  /** The least number of first choices that honest ratings of repeated requests correct in six sessions. */
  correctedMin: Record<(typeof registryNames)[number], number>
}

const registryNames = ['the bundled agents', '40 agents of a list'] as const

const at = 1_800_000_000_000
const bundled = await bundledOffers()
const [bundledName, listedName] = registryNames
const natural: Recorded[] = naturalRequests
  .filter(({ heldOut }) => !heldOut)
  .flatMap((request) =>
    request.agent === null ? [] : [{ text: request.text, types: typesOf(request), agent: request.agent }],
  )
const listed = new Map<string, Offer>(
  agents
    .slice(0, 40)
    .map(({ name, description }) => [name, { name, description, skills: [skillOf(name)], queueDepth: 0 }]),
)
const ofList: Recorded[] = texts
  .filter(({ agent }) => listed.has(agent))
  .slice(0, 60)
  .map(({ query, agent }) => ({ text: query, types: ['text/plain'], agent }))

/** All agents and texts of the replay. */
export const replayedAgents: ReadonlyMap<string, Offer> = new Map([...bundled, ...listed])
export const replayedTexts: readonly string[] = [...natural, ...ofList].map(({ text }) => text)

function indexOf(offers: ReadonlyMap<string, Offer>, callersMin: number, { vectorsOf }: Replay): AgentIndex {
  const index = new AgentIndex({ now: () => at, callersMin })
  for (const [name, offer] of offers) {
    index.put(name, name.toLowerCase(), offer)
    index.setVectors(name, vectorsOf?.(name))
  }
  return index
}

function firstFor(index: AgentIndex, { text, types }: Recorded, { optionsFor }: Replay): string | undefined {
  const request = {
    taskSummary: text,
    inputMimeTypes: types,
    weights: defaultWeights,
    minScore: routeMinScore,
  }
  return index.rank(request, { limit: 1, ...optionsFor?.(text) }).candidates[0]?.id
}

/** What an example stores of a text. */
const featuresOf = ({ text }: Recorded, { exampleVector }: Replay) => ({
  words: trainingWords(text),
  ...exampleVector?.(text),
})

function shuffled<T>(all: readonly T[], next: () => number): T[] {
  return all
    .map((one) => ({ one, place: next() }))
    .sort((a, b) => a.place - b.place)
    .map(({ one }) => one)
}

/** How the callers of a session behave after a task. Returns examples, or none. */
type Behaviour = (
  task: Recorded & { chosen: string; number: number },
  next: () => number,
) => Partial<TrainingExample>[]

const honest: Behaviour = ({ chosen, agent, number }, next) => {
  const caller = `caller-${number % 8}`
  if (next() < 0.4) return []
  if (chosen === agent) return [{ agent: chosen, outcome: 1, caller }]
  // A correction names the right agent; a bad rating does not.
  return next() < 0.5
    ? [{ agent: chosen, outcome: -1, caller }]
    : [
        { agent: chosen, outcome: -1, caller },
        { agent, outcome: 1, caller },
      ]
}

const behaviours: [string, number, Behaviour][] = [
  ['callers rate some of their tasks', 2, honest],
  ['a single caller rates some of its tasks', 1, (task, next) => honest({ ...task, number: 0 }, next)],
  [
    'one caller praises one agent for every request, and others are honest',
    2,
    (task, next) => [
      ...honest(task, next),
      { agent: 'document-maker', outcome: 1, caller: 'eve' },
      { agent: task.agent, outcome: -1, caller: 'eve' },
    ],
  ],
  [
    'every tenth rating is wrong',
    2,
    (task, next) =>
      task.number % 10 === 9
        ? [
            {
              agent: task.chosen,
              outcome: task.chosen === task.agent ? -1 : 1,
              caller: `caller-${task.number % 8}`,
            },
          ]
        : honest(task, next),
  ],
  [
    'failures through no fault of the agent',
    2,
    ({ chosen, number }, next) =>
      next() < 0.1 ? [{ agent: chosen, outcome: -1, caller: `caller-${number % 8}` }] : [],
  ],
]

const usedAgain = { outcome: 1, used: true }
behaviours.push(
  [
    'callers use the agents again that they name, one in ten a wrong one',
    2,
    ({ chosen, agent, number }, next) =>
      next() < 0.5
        ? [{ agent: next() < 0.1 ? chosen : agent, caller: `caller-${number % 8}`, ...usedAgain }]
        : [],
  ],
  [
    'two callers use one agent again for every request, and others are honest',
    1,
    (task, next) => [
      ...honest(task, next),
      { agent: 'document-maker', caller: ['eve', 'mallory'][task.number % 2] ?? '', ...usedAgain },
    ],
  ],
)

/** Two callers that count as independent, but work together. */
const accomplices =
  (of: (agent: string) => Partial<TrainingExample>): Behaviour =>
  (task, next) => [
    ...honest(task, next),
    { ...of(task.agent), caller: ['eve', 'mallory'][task.number % 2] ?? '' },
  ]

interface Play {
  replay: Replay
  offers: ReadonlyMap<string, Offer>
  callersMin: number
  behave: Behaviour
  next: () => number
  /** The first choice for each text without learning. */
  without: ReadonlyMap<string, string | undefined>
}

/** Plays one session. Returns how many first choices were right after each task, with and without learning. */
function played(
  session: readonly Recorded[],
  { replay, offers, callersMin, behave, next, without }: Play,
): { right: number; rightWithout: number; changed: number }[] {
  const index = indexOf(offers, callersMin, replay)
  let [right, rightWithout, changed] = [0, 0, 0]
  return session.map((task, number) => {
    const chosen = firstFor(index, task, replay)
    if (chosen === task.agent) right += 1
    if (without.get(task.text) === task.agent) rightWithout += 1
    if (chosen !== without.get(task.text)) changed += 1
    const examples = chosen === undefined ? [] : behave({ ...task, chosen, number }, next)
    const features = featuresOf(task, replay)
    for (const { agent = chosen ?? '', caller = 'anyone', outcome = 0, used = false } of examples)
      if (offers.has(agent))
        index.learn({ agent, caller, outcome, used, context: `c${number} ${caller}`, at, ...features })
    return { right, rightWithout, changed }
  })
}

/** The cases of a replay of recorded sessions: learning makes no first choice worse. */
export function replayCases(replay: Replay): void {
  describe.each([
    [bundledName, bundled, natural],
    [listedName, listed, ofList],
  ] as const)('%s', (name, offers, recorded) => {
    const plain = indexOf(offers, 2, replay)
    const without = new Map(recorded.map((task) => [task.text, firstFor(plain, task, replay)]))

    test.each(behaviours)(
      'after every prefix of shuffled sessions, as many first choices were right as without learning: %s',
      (_what, callersMin, behave) => {
        for (let seed = 1; seed <= replay.shuffles; seed += 1) {
          const next = numbersFrom(seed)
          const results = played(shuffled(recorded, next), {
            replay,
            offers,
            callersMin,
            behave,
            next,
            without,
          })
          for (const { right, rightWithout } of results)
            expect(right, `shuffle ${seed}`).toBeGreaterThanOrEqual(rightWithout)
        }
      },
    )

    /** The first choices of six sessions of 200 tasks, in which requests are repeated. */
    function inLongSessions(callersMin: number, behave: Behaviour) {
      const sums = { right: 0, rightWithout: 0, changed: 0 }
      for (let seed = 1; seed <= 6; seed += 1) {
        const next = numbersFrom(seed)
        const pick = () => recorded[Math.floor(next() * recorded.length)] as Recorded
        const session = Array.from({ length: 200 }, pick)
        const last = played(session, { replay, offers, callersMin, behave, next, without }).at(-1)
        for (const name of ['right', 'rightWithout', 'changed'] as const) sums[name] += last?.[name] ?? 0
      }
      return sums
    }

    test('if requests are repeated, honest ratings change first choices, and more of them are right', () => {
      const { right, rightWithout, changed } = inLongSessions(2, honest)
      const least = replay.correctedMin[name]
      expect(changed).toBeGreaterThanOrEqual(least)
      expect(right - rightWithout).toBeGreaterThanOrEqual(least)
    })

    test.each(behaviours)(
      'if requests are repeated, at most one first choice in a hundred is lost: %s',
      (_what, callersMin, behave) => {
        const { right, rightWithout } = inLongSessions(callersMin, behave)
        expect(right).toBeGreaterThanOrEqual(0.99 * rightWithout)
      },
    )

    test.each([
      ['praise one agent for everything', () => ({ agent: 'document-maker', outcome: 1 })],
      ['blame the right agent for everything', (agent: string) => ({ agent, outcome: -1 })],
    ])('two accomplices who %s cost at most one first choice in five', (_what, of) => {
      const { right, rightWithout } = inLongSessions(2, accomplices(of))
      expect(right).toBeGreaterThanOrEqual(0.8 * rightWithout)
    })
  })

  test('after any order of 200 tasks, every request that reached the right agent still does', () => {
    const plain = indexOf(bundled, 2, replay)
    const rightBefore = natural.filter((task) => firstFor(plain, task, replay) === task.agent)
    for (let seed = 1; seed <= 10; seed += 1) {
      const next = numbersFrom(seed)
      const index = indexOf(bundled, 2, replay)
      const session = Array.from(
        { length: 200 },
        () => natural[Math.floor(next() * natural.length)] as Recorded,
      )
      session.forEach((task, number) => {
        const chosen = firstFor(index, task, replay) ?? ''
        for (const { agent = chosen, caller = '', outcome = 0 } of honest({ ...task, chosen, number }, next))
          index.learn({ agent, caller, outcome, context: `c${number}`, at, ...featuresOf(task, replay) })
      })
      expect(rightBefore.filter((task) => firstFor(index, task, replay) !== task.agent)).toEqual([])
    }
  })
}
