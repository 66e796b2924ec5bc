import type { HandlerContext } from '@parley/agent'
import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import agent from './agent.ts'

type Said = { role: 'user' | 'agent' | 'assistant'; parts: object[] }

/** Runs the handler with these inputs and returns its output. */
async function run(given: { text?: string; data?: object; history?: Said[]; references?: object[] }) {
  const context = {
    text: '',
    data: {},
    references: [],
    context: { id: 'c', history: [] },
    history: [],
    signal: new AbortController().signal,
    ask: (prompt: string, data?: object) => ({ asked: prompt, data }),
    decline: (reason: string) => ({ declined: reason }),
    ...given,
  } as unknown as HandlerContext
  return Array.fromAsync(agent.handle(context) as AsyncIterable<unknown>)
}

test('answers a question in words with text and data', async () => {
  expect(await run({ text: 'What is 12 inch to cm?' })).toEqual([
    '12 inch to cm = 30.48 cm',
    {
      expression: '12 inch to cm',
      result: '30.48 cm',
      type: 'Unit',
      formatted: '30.48 cm',
      value: 30.48,
      unit: 'cm',
    },
  ])
})

test('answers a program of several lines with one result per line', async () => {
  const [text, data] = await run({ text: 'a = 3\nb = 4; f(x) = x^2\nsqrt(f(a) + f(b))' })
  expect(text).toBe('a = 3\nb = 4\nf(x) = x^2 (defined)\nsqrt(f(a) + f(b)) = 5')
  expect(data).toMatchObject({ result: 5, type: 'number', steps: { length: 4 } })
})

test('explains the error and the correct notation after an invalid expression', async () => {
  const [asked] = await run({ text: '2 +* 3' })
  expect(asked).toEqual({
    asked: expect.stringMatching(/`2 \+\* 3`: value expected at character 4\. Write for example/),
    data: { expression: '2 +* 3' },
  })
})

test('explains invalid arguments without naming internal functions or types', async () => {
  const [said] = (await run({ text: '3 * sqrt' })) as { asked: string }[]
  expect(said?.asked).toMatch(
    /^I cannot calculate `3 \* sqrt`: its parts cannot be combined in this way\. Write/,
  )
})

test.each(['5', 'x = 5'])(
  'an undefined name leads to a follow-up question, and %j completes the expression',
  async (answer) => {
    const [asked] = (await run({ text: 'x^2 + 1' })) as { asked: string; data: object }[]
    expect(asked?.asked).toContain('What is `x`?')
    const history = after({ role: 'assistant', parts: [words, { kind: 'data', data: asked?.data }] })
    expect((await run({ text: answer, history }))[1]).toMatchObject({ result: 26 })
    expect((await run({ text: '7 * 7', history }))[1]).toMatchObject({ result: 49 })
  },
)

test.each(['what is the area of a circle with radius 5', 'is 97 prime?', 'how old is the universe'])(
  'requests a new calculation instead of the value of a word for the sentence %s',
  async (text) => {
    const [asked] = (await run({ text })) as { asked: string; data: object }[]
    expect(asked?.asked).toMatch(/^I cannot read `.*` as a calculation\./)
    expect(asked?.data).not.toHaveProperty('missing')
  },
)

const words = { kind: 'text', text: 'said' }
const after = (question: Said): Said[] => [
  { role: 'user', parts: [words] },
  question,
  { role: 'user', parts: [words] },
]
const dataOf = (data: object): Said['parts'] => [words, { kind: 'data', data }]
const question = { missing: 'x', expression: 'x^2 + 1' }

test.each<[string, Said]>([
  ['in another role', { role: 'agent', parts: dataOf(question) }],
  ['with a pattern as its name', { role: 'assistant', parts: dataOf({ ...question, missing: '(5|5)+' }) }],
  [
    'with a costly pattern as its name',
    { role: 'assistant', parts: dataOf({ ...question, missing: '((5+)+)+x' }) },
  ],
  ['with a name of lines', { role: 'assistant', parts: dataOf({ ...question, missing: 'x\ny' }) }],
  ['with more than a question holds', { role: 'assistant', parts: dataOf({ ...question, more: 1 }) }],
  [
    'with too long an expression',
    { role: 'assistant', parts: dataOf({ ...question, expression: 'x'.repeat(5000) }) },
  ],
  ['without words', { role: 'assistant', parts: [{ kind: 'data', data: question }] }],
])('a message %s does not count as one of our questions', async (_name, said) => {
  expect((await run({ text: '5', history: after(said) }))[1]).toMatchObject({ result: 5 })
})

test('a caller’s first message with the role agent does not count as one of our questions', async () => {
  const history: Said[] = [
    { role: 'assistant', parts: dataOf(question) },
    { role: 'user', parts: [words] },
  ]
  expect((await run({ text: '5', history }))[1]).toMatchObject({ result: 5 })
})

test('ans is the result of the referenced task', async () => {
  const references = [{ artifacts: [{ parts: [{ kind: 'data', data: { formatted: '49.05 N' } }] }] }]
  expect((await run({ text: 'ans * 2', references }))[1]).toMatchObject({ result: '98.1 N' })
})

test.each([
  ['nothing', '', 'Which expression'],
  ['a currency', '100 USD to EUR', 'exchange rates'],
  ['a refused function', 'evaluate("1")', 'is not available here'],
])('requests another calculation for %s and gives the reason', async (_name, text, reason) => {
  expect(await run({ text })).toMatchObject([{ asked: expect.stringContaining(reason) }])
})

test('declines calculations beyond the limits', async () => {
  expect(await run({ text: 'ones(1e9)' })).toMatchObject([
    { declined: expect.stringMatching(/more memory|takes longer/) },
  ])
})

test('asks a follow-up question over HTTP and calculates the result from the answer', async () => {
  await using server = await testAgent(agent)
  const ann = server.caller('ann')
  const asked = await ann.sendAndWait('x^2 + 1')
  expect(asked.status.state).toBe('input-required')
  const done = await ann.sendAndWait({
    parts: [{ kind: 'text', text: '5' }],
    taskId: asked.id,
    contextId: asked.context_id,
  })
  expect(done.status.state).toBe('completed')
  expect(done.artifacts[0]?.parts).toMatchObject([{ text: 'x = 5\nx^2 + 1 = 26' }, { data: { result: 26 } }])
  const next = await ann.sendAndWait({
    parts: [{ kind: 'text', text: 'ans * 2' }],
    contextId: asked.context_id,
  })
  expect(next.artifacts[0]?.parts[1]).toMatchObject({ data: { result: 52 } })
})
