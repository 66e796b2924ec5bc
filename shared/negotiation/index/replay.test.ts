import { bundledOffers, naturalRequests, typesOf } from '@parley/tools/testing/natural-requests'
import { agents, numbersFrom, skillOf, texts } from '@parley/tools/testing/routing-list'
import { describe, expect, test } from 'vitest'
import { trainingWords } from '../score/learning.ts'
import type { Offer } from '../score/offer.ts'
import type { TrainingExample } from '../score/training-example.ts'
import { defaultWeights, routeMinScore } from '../score/weights.ts'
import { AgentIndex } from './agent-index.ts'

/** A recorded task: the request, and the agent that would be right. */
interface Recorded {
  text: string
  types: string[]
  agent: string
}

const at = 1_800_000_000_000
const shuffles = 100
const bundled = await bundledOffers()
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

function indexOf(offers: ReadonlyMap<string, Offer>, callersMin: number): AgentIndex {
  const index = new AgentIndex({ now: () => at, callersMin })
  for (const [name, offer] of offers) index.put(name, name.toLowerCase(), offer)
  return index
}

function firstFor(index: AgentIndex, { text, types }: Recorded): string | undefined {
  const request = {
    taskSummary: text,
    inputMimeTypes: types,
    weights: defaultWeights,
    minScore: routeMinScore,
  }
  return index.rank(request, { limit: 1 }).candidates[0]?.id
}

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

describe.each([
  ['the bundled agents', bundled, natural],
  ['40 agents of a list', listed, ofList],
] as const)('%s', (_name, offers, recorded) => {
  test.each(behaviours)(
    'after every prefix of 100 shuffled sessions, as many first choices were right as without learning: %s',
    (_what, callersMin, behave) => {
      const plain = indexOf(offers, callersMin)
      const without = new Map(recorded.map((task) => [task.text, firstFor(plain, task)]))
      for (let seed = 1; seed <= shuffles; seed += 1) {
        const next = numbersFrom(seed)
        const index = indexOf(offers, callersMin)
        let [right, rightWithout] = [0, 0]
        shuffled(recorded, next).forEach((task, number) => {
          const chosen = firstFor(index, task)
          if (chosen === task.agent) right += 1
          if (without.get(task.text) === task.agent) rightWithout += 1
          expect(right, `shuffle ${seed}, after ${number + 1} tasks`).toBeGreaterThanOrEqual(rightWithout)
          if (chosen === undefined) return
          const examples = behave({ ...task, chosen, number }, next)
          index.learn(
            ...examples.flatMap(({ agent = chosen, caller = 'anyone', outcome = 0, used = false }) =>
              offers.has(agent)
                ? [
                    {
                      agent,
                      caller,
                      outcome,
                      used,
                      context: `c${number} ${caller}`,
                      at,
                      words: trainingWords(task.text),
                    },
                  ]
                : [],
            ),
          )
        })
      }
    },
  )
})

test('after any order of 200 tasks, every request that reached the right agent still does', () => {
  const plain = indexOf(bundled, 2)
  const rightBefore = natural.filter((task) => firstFor(plain, task) === task.agent)
  for (let seed = 1; seed <= 10; seed += 1) {
    const next = numbersFrom(seed)
    const index = indexOf(bundled, 2)
    const session = Array.from(
      { length: 200 },
      () => natural[Math.floor(next() * natural.length)] as Recorded,
    )
    session.forEach((task, number) => {
      const chosen = firstFor(index, task) ?? ''
      for (const { agent = chosen, caller = '', outcome = 0 } of honest({ ...task, chosen, number }, next))
        index.learn({ agent, caller, outcome, context: `c${number}`, at, words: trainingWords(task.text) })
    })
    expect(rightBefore.filter((task) => firstFor(index, task) !== task.agent)).toEqual([])
  }
})
