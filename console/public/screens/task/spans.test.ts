import { expect, test } from 'vitest'
import { lanesOf, ticksOf } from './spans.js'

const start = Date.parse('2026-11-22T12:00:00Z')
const at = (seconds: number) => new Date(start + seconds * 1000).toISOString()
const update = (seconds: number, state: string) => ({
  sequence: 1,
  at: at(seconds),
  kind: 'status-update' as const,
  state,
})
const task = {
  agent: 'sky',
  task_id: 't1',
  parent_id: null,
  state: 'completed',
  created_at: at(0),
  updated_at: at(60),
  events: [
    update(2, 'working'),
    update(10, 'input-required'),
    update(30, 'working'),
    update(60, 'completed'),
  ],
  runs: [
    { started_at: at(2), ended_at: at(10), outcome: 'input-required' },
    { started_at: at(30), ended_at: at(40), outcome: 'lost' },
    { started_at: at(45), ended_at: at(60), outcome: 'completed' },
  ],
  webhooks: [],
  payments: [],
}
const spansOf = (one: typeof task | object, skews = {}, now = start + 100_000) =>
  lanesOf([{ ...task, ...one }], skews, now)[0]?.spans.map(({ kind, from, to }) => [
    kind,
    (from - start) / 1000,
    (to - start) / 1000,
  ])
const whole = [
  ['queue', 0, 2],
  ['work', 2, 10],
  ['pause', 10, 30],
  ['lost', 30, 40],
  ['retry', 40, 45],
  ['work', 45, 60],
]

test('the axis separates queue, work, pauses and starts whose process ended', () => {
  expect(spansOf({})).toEqual(whole)
})

test('an agent’s times are corrected by the difference of its clock', () => {
  expect(spansOf({}, { sky: 5000 })?.[1]).toEqual(['work', -3, 5])
})

test('without runs, the axis is made of the events', () => {
  expect(spansOf({ runs: [] })).toEqual([
    ['queue', 0, 2],
    ['work', 2, 10],
    ['pause', 10, 30],
    ['work', 30, 60],
  ])
})

test('payments and webhooks of each task of the chain are marks, by the corrected clock of its agent', () => {
  const webhook = { config_id: 'w', url: 'https://hooks.example/…', attempts: 2, last_status: 503 }
  const payment = { payment_id: 'p', amount: '0.05', asset_name: 'USDC', created_at: at(12) }
  const child = {
    ...task,
    agent: 'sea',
    task_id: 't2',
    parent_id: 't1',
    webhooks: [
      { ...webhook, state: 'failing' as const, last_attempt_at: at(70) },
      { ...webhook, state: 'pending' as const, attempts: 0, last_attempt_at: null },
    ],
    payments: [
      { ...payment, state: 'settled', completed_at: at(25) },
      { ...payment, state: 'payment-required', completed_at: null },
    ],
  }
  const [own, other] = lanesOf([task, child], { sea: 5000 }, start)
  expect(own?.marks.map(({ kind }) => kind)).toEqual(['end'])
  const marks = other?.marks.map(({ kind, at: time, label, tone }) => [
    kind,
    (time - start) / 1000,
    label,
    tone,
  ])
  expect(marks).toEqual([
    ['end', 55, 'completed', 'completed'],
    ['payment', 20, 'Payment of 0.05 USDC: settled', 'violet'],
    ['payment', 7, 'Payment of 0.05 USDC: payment-required', 'violet'],
    ['webhook', 65, 'Webhook https://hooks.example/…: failing after 2 attempts', 'bad'],
  ])
  expect(other?.to).toBe(start + 65_000)
})

test('a span that has not ended reaches to the present', () => {
  const runs = task.runs.slice(0, 1)
  expect(spansOf({ state: 'input-required', runs })?.at(-1)).toEqual(['pause', 10, 100])
  expect(spansOf({ state: 'submitted', runs: [], events: [] })).toEqual([['queue', 0, 100]])
  const open = [{ started_at: at(2), ended_at: null, outcome: null }]
  expect(spansOf({ state: 'working', runs: open })?.at(-1)).toEqual(['work', 2, 100])
})

test('tasks that name each other as parents are shown once', () => {
  const lanes = lanesOf(
    [
      { ...task, task_id: 'a', parent_id: 'b' },
      { ...task, task_id: 'b', parent_id: 'a' },
      { ...task, task_id: 'c', parent_id: null },
      { ...task, task_id: 'd', parent_id: 'c' },
    ],
    {},
    start,
  )
  expect(lanes.map((lane) => [lane.task.task_id, lane.depth])).toEqual([
    ['c', 0],
    ['d', 1],
    ['a', 0],
    ['b', 1],
  ])
})

test.each([
  [0.5, 7],
  [1000, 7],
  [86_400_000 * 400, 3],
])('an axis of %d ms has at most %d steps', (length, count) => {
  const ticks = ticksOf(length, count)
  expect(ticks[0]).toBe(0)
  expect(ticks.length).toBeLessThanOrEqual(count + 1)
})
