import { randomUUID } from 'node:crypto'
import { sampleRecord } from '@parley/engine/store/sample-record.cases'
import type { TaskRecord } from '@parley/engine/store/store'
import { agentText } from '@parley/engine/tasks/agent-message'
import { apply } from '@parley/engine/tasks/transitions'
import { expect, test } from 'vitest'
import { handlerRuns } from './handler-runs.ts'

const pickUp = (record: TaskRecord) =>
  apply(record, { kind: 'pick-up', lease: { holder: randomUUID(), until: Date.now() + 1000 } })
const progress = (record: TaskRecord) =>
  apply(record, { kind: 'progress', message: agentText(record, 'half done') })
const outcomesOf = (record: TaskRecord) => handlerRuns(record).map(({ outcome }) => outcome)

test('a task that waits has no run, and a running one has a run without an end', () => {
  const waiting = sampleRecord()
  expect(handlerRuns(waiting)).toEqual([])
  const running = progress(pickUp(waiting))
  expect(handlerRuns(running)).toEqual([
    { started_at: running.events[0]?.timestamp, ended_at: null, outcome: null },
  ])
})

test('a start after a lost process ends the earlier run as lost', () => {
  const record = pickUp(pickUp(progress(pickUp(sampleRecord()))))
  expect(record.starts).toBe(3)
  expect(outcomesOf(record)).toEqual(['lost', 'lost', null])
  const [first, second] = handlerRuns(record)
  expect(first?.ended_at).toBe(second?.started_at)
  expect(outcomesOf(apply(record, { kind: 'cancel' }))).toEqual(['lost', 'lost', 'canceled'])
})

test('a process that stops ends its run as released, before and after the next start', () => {
  const released = apply(pickUp(sampleRecord()), { kind: 'release' })
  expect(outcomesOf(released)).toEqual(['released'])
  expect(outcomesOf(pickUp(released))).toEqual(['released', null])
})

test('a task keeps the times of its newest 20 restarts', () => {
  let record = sampleRecord()
  for (let start = 0; start < 30; start += 1) record = pickUp(record)
  expect(record.restarts).toHaveLength(20)
  expect(handlerRuns(record)).toHaveLength(21)
})
