import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import { negotiate } from './negotiate.ts'
import type { Offer, OfferedSkill } from './offer.ts'
import { type NegotiationRequest, parseNegotiation } from './request.ts'
import { costScore, loadScore, performanceScore } from './sub-scores.ts'
import { defaultWeights } from './weights.ts'

const skill = (name: string, description = '', more: Partial<OfferedSkill> = {}): OfferedSkill => ({
  id: name.replaceAll(' ', '-'),
  name,
  description,
  tags: [],
  inputModes: ['text/plain'],
  outputModes: ['text/plain'],
  examples: [],
  allowedTools: [],
  performance: {},
  assessment: { keywords: [], specializations: [], antiPatterns: [] },
  ...more,
})
const offer = (name: string, description: string, more: Partial<Offer> = {}): Offer => ({
  name,
  description,
  skills: [skill(name)],
  queueDepth: 0,
  ...more,
})
const ask = (taskSummary: string, more: Partial<NegotiationRequest> = {}): NegotiationRequest => ({
  taskSummary,
  weights: { skillMatch: 1, ioCompatibility: 0, performance: 0, load: 0, cost: 0 },
  ...more,
})

test('a pasted table counts like an input type, but excludes no agent', () => {
  const text = 'What stands out here?\nmonth,sales\nJan,12\nFeb,15\nMar,9'
  const analyst = { skills: [skill('analysis', '', { inputModes: ['text/plain', 'text/csv'] })] }
  const scores = [offer('analyst', 'says what stands out', analyst), offer('poet', 'stands out')].map((one) =>
    negotiate(one, ask(text, { inputMimeTypes: ['text/plain'] })),
  )
  expect(scores.map(({ subscores }) => subscores.ioCompatibility)).toEqual([1, 0.5])
  expect(scores.map(({ brokenConstraint }) => brokenConstraint)).toEqual([undefined, undefined])
})

test.each([
  ['NewsPlugin', 'latest news'],
  ['air_quality_forecast', 'how good is the air'],
  ['airqualityforecast', 'how good is the air'],
  ['天气预报', '明天天气怎么样'],
  ['الطقس', 'كيف طقس اليوم'],
  ['🍕', 'one 🍕 please'],
  ['Airplanes', 'a flight to Rome'],
  ['percentages', '17% of 89.90'],
])('%s matches "%s"', (name, text) => {
  expect(negotiate(offer(name, ''), ask(text)).score).toBeGreaterThan(0.1)
})

test('reasons show words as the request and the card write them, never stems', () => {
  const converter = offer('Unit converter', 'Converts Kilometers and calculates areas', {
    skills: [skill('Conversion', 'Converts Kilometers and calculates areas')],
  })
  const said = (text: string) => negotiate(converter, ask(text)).reasons.join('\n')
  expect(said('Calculate an AREA')).toContain('skill “Conversion”: it mentions “Calculate” and “AREA”')
  expect(said('how many kilometres')).toContain('it mentions “Kilometers” for “kilometres”')
})

test('an agent whose description is stuffed with keywords does not rank above the agent that does the work', () => {
  const words =
    'weather news music travel hotel recipe stock chart pdf translate law fitness code email tax job garden film'
  const stuffed = offer('everything', `${words} `.repeat(50))
  for (const word of words.split(' ')) {
    const request = ask(`I need help with ${word}`)
    expect(negotiate(offer(word, `Does ${word}`), request).score).toBeGreaterThan(
      negotiate(stuffed, request).score,
    )
  }
})

test('measurements override declared values once there are enough samples', () => {
  const skills = [skill('Weather', '', { performance: { avgProcessingTimeMs: 100 } })]
  const measured = (samples: number) =>
    negotiate(
      { skills, queueDepth: 0, measured: { samples, latencyMs: 800, successShare: 0.5 } },
      {
        ...ask('weather'),
        maxLatencyMs: 1000,
      },
    )
  expect(measured(4)).toMatchObject({ estimatedLatencyMs: 100, subscores: { performance: 0.9 } })
  expect(measured(5)).toMatchObject({ estimatedLatencyMs: 800, subscores: { performance: 0.1 } })
})

test.each([
  ['0.5', '0.49', 'price 0.5 is above max_cost_amount 0.49'],
  [`1${'0'.repeat(29)}.1`, `1${'0'.repeat(29)}`, 'above max_cost_amount'],
  ['1e3', '5', 'its price is invalid'],
])('a price of %s breaks max_cost_amount %s', (amount, maxCostAmount, reason) => {
  const { brokenConstraint, score } = negotiate(
    offer('w', 'w', { price: { amount } }),
    ask('w', { maxCostAmount }),
  )
  expect([brokenConstraint, score]).toEqual([expect.stringContaining(reason), 0])
})

test('sub-scores without measurements equal those of the reference implementation', () => {
  expect([
    costScore(undefined, '1'),
    costScore('1', undefined),
    costScore('1', '2'),
    costScore('0.00', '0'),
  ]).toEqual([1, 0.5, 0.75, 1])
  expect([loadScore({ queueDepth: 0 }), loadScore({ queueDepth: 3 })]).toEqual([1, 0.25])
  expect([performanceScore(50, 100), performanceScore(300, 100), performanceScore(5, undefined)]).toEqual([
    0.5, 0, 1,
  ])
})

test('measurements by the gateway refine the load and performance sub-scores (record 20)', () => {
  const load = (queueDepth: number, activeTasks: number) => loadScore({ queueDepth, activeTasks })
  expect([load(0, 0), load(0, 10), load(2, 10)]).toEqual([1, 0.5, 0.25])
  // Running tasks decide between agents without waiting tasks, but never outweigh a waiting task.
  expect(load(0, 1)).toBeGreaterThan(load(0, 2))
  expect(load(0, 9)).toBeGreaterThan(load(1, 0))
  expect([performanceScore(50, 100, 0.5), performanceScore(50, undefined, 0.5)]).toEqual([0.25, 0.5])
  // A limit without an estimate scores between an agent that meets the limit and one that does not.
  expect([performanceScore(undefined, 100), performanceScore(undefined, undefined)]).toEqual([0.5, 1])
})

test("an agent's own response has the sub-scores of the reference implementation", async () => {
  const skills = [
    { id: 'weather', name: 'Weather', description: 'weather', performance: { avgProcessingTimeMs: 50 } },
  ]
  await using agent = await testAgent({ skills, handle: () => 'done' })
  const subscores = async (more: object) => {
    const body = { task_summary: 'weather', weights: { performance: 1, load: 1 }, ...more }
    const answer = await fetch(`${agent.url}/agent/negotiation`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return ((await answer.json()) as { subscores: object }).subscores
  }
  expect(await subscores({})).toMatchObject({ performance: 1, load: 1 })
  expect(await subscores({ max_latency_ms: 100 })).toMatchObject({ performance: 0.5, load: 1 })
})

test.each([['-1'], ['+1'], ['1e3'], ['€5'], ['5 USD'], ['1,5'], ['.5'], ['NaN'], ['9'.repeat(400)], ['']])(
  'max_cost_amount %s is rejected',
  (amount) => {
    const body = { task_summary: 'x', weights: {}, max_cost_amount: amount }
    expect(() => parseNegotiation(body)).toThrow(/invalid/i)
  },
)

test('agents without skills, with 500 skills and with texts of 1 MB are scored in bounded time', () => {
  expect(negotiate({ skills: [], queueDepth: 0 }, ask('x')).brokenConstraint).toBe('the agent has no skills')
  const many = Array.from({ length: 500 }, (_, at) => skill(`Skill ${at}`, 'weather everywhere'))
  expect(negotiate({ skills: many, queueDepth: 0 }, ask('weather')).skillMatches).toHaveLength(20)
  const long = ask('weather', { taskDetails: 'rain '.repeat(200_000) })
  expect(negotiate(offer('weather', 'rain'), long).canHandle).toBe(true)
})

test('a text unrelated to the agent has skill match 0, whatever the other sub-scores are', () => {
  const answer = negotiate(offer('weather', 'rain'), ask('xyzzy plugh', { weights: defaultWeights }))
  expect(answer).toMatchObject({
    canHandle: false,
    score: 0.45,
    rejectionReason: 'no skill matches the task',
  })
})

test.each([
  ['all failed', { samples: 0, examples: { completed: 0, tried: 3 } }, 0, '(0 of 3)'],
  [
    'one completed',
    { samples: 0, examples: { completed: 1, tried: 4 } },
    0.25,
    'completed 1 of 4 of its own',
  ],
  ['all completed', { samples: 0, examples: { completed: 3, tried: 3 } }, 1, undefined],
  [
    'with few samples',
    { samples: 2, successShare: 1, examples: { completed: 0, tried: 2 } },
    0.5,
    '(0 of 2)',
  ],
  [
    'with enough samples',
    { samples: 5, successShare: 1, examples: { completed: 0, tried: 3 } },
    1,
    undefined,
  ],
  ['none tried', { samples: 0, examples: { completed: 0, tried: 0 } }, 1, undefined],
])('examples that the gateway tried count as first samples: %s', (_what, measured, performance, reason) => {
  const result = negotiate(offer('converter', 'converts units', { measured }), ask('convert units'))
  expect(result.subscores.performance).toBe(performance)
  const said = result.reasons.filter((one) => one.includes('own examples'))
  expect(said.filter((one) => one.includes(reason ?? ''))).toHaveLength(reason === undefined ? 0 : 1)
})
