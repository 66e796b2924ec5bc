import type { ParleyError } from '@parley/wire/errors'
import type { Message, TaskState } from '@parley/wire/model/task'
import { isPaused, isTerminal, taskStates } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import type { TaskRecord } from '../store/store.ts'
import { apply, type Change } from './transitions.ts'

const message: Message = {
  role: 'agent',
  parts: [{ kind: 'text', text: 'x' }],
  messageId: 'm',
  contextId: 'c',
  taskId: 't',
}
const artifact = { artifactId: 'a', name: 'result', parts: message.parts }
const changes = {
  'pick-up': { kind: 'pick-up', lease: { holder: 'us', until: 1 } },
  release: { kind: 'release' },
  continue: { kind: 'continue', message, signed: true },
  pause: { kind: 'pause', state: 'input-required', message, dueAt: 1, workedMs: 5 },
  complete: {
    kind: 'complete',
    artifacts: [artifact, { ...artifact, artifactId: 'b' }],
    message,
    workedMs: 5,
  },
  paid: { kind: 'paid' },
  'refuse-payment': { kind: 'refuse-payment', payment: { status: 'payment-failed' } },
  fail: { kind: 'fail', message },
  reject: { kind: 'reject', message },
  cancel: { kind: 'cancel' },
  children: { kind: 'children', children: [] },
  progress: { kind: 'progress', message },
} satisfies Record<Change['kind'], Change>

function taskIn(state: TaskState): TaskRecord {
  return {
    id: 't',
    contextId: 'c',
    owner: 'o',
    status: { state, timestamp: '' },
    history: [],
    artifacts: [],
    version: 3,
    events: [],
    createdAt: '',
    updatedAt: '',
    starts: 1,
    workedMs: 0,
    referenceTaskIds: [],
    acceptedOutputModes: [],
  }
}

const allowed: Partial<Record<TaskState, Partial<Record<Change['kind'], TaskState>>>> = {
  submitted: {
    'pick-up': 'working',
    paid: 'submitted',
    pause: 'input-required',
    cancel: 'canceled',
    fail: 'failed',
    reject: 'rejected',
  },
  working: {
    'pick-up': 'working',
    release: 'working',
    pause: 'input-required',
    complete: 'completed',
    fail: 'failed',
    reject: 'rejected',
    cancel: 'canceled',
    children: 'working',
    progress: 'working',
  },
  'payment-required': { 'refuse-payment': 'payment-required' },
  completed: { children: 'completed' },
  failed: { children: 'failed' },
  canceled: { children: 'canceled' },
  rejected: { children: 'rejected' },
}
const afterPause = { continue: 'submitted', cancel: 'canceled', fail: 'failed', reject: 'rejected' } as const

for (const state of taskStates) {
  for (const change of Object.values(changes)) {
    const to = (isPaused(state) ? { ...afterPause, ...allowed[state] } : allowed[state])?.[
      change.kind as 'cancel'
    ]
    const code = !isTerminal(state) ? -32004 : change.kind === 'cancel' ? -32002 : -32008
    test(`${state} + ${change.kind}: ${to ?? 'refused'}`, () => {
      const before = taskIn(state)
      expect(outcomeOf(before, change)).toBe(to ?? code)
      expect(before).toEqual(taskIn(state))
    })
  }
}

/** Returns the state after the change, or the error code. */
function outcomeOf(task: TaskRecord, change: Change): TaskState | number {
  try {
    return apply(task, change).status.state
  } catch (error) {
    return (error as ParleyError).code
  }
}

test('a completed task emits its artifact events and then the terminal status event, numbered consecutively', () => {
  const working = apply(taskIn('submitted'), changes['pick-up'])
  const { events } = apply(working, changes.complete)
  expect(events.map((event) => [event.sequence, event.kind])).toEqual([
    [1, 'status-update'],
    [2, 'artifact-update'],
    [3, 'artifact-update'],
    [4, 'status-update'],
  ])
  expect(new Set(events.map((event) => event.eventId)).size).toBe(4)
  expect(events.at(-1)).toMatchObject({ final: true })
  expect(events[0]).toMatchObject({ final: false })
})

test('emits no event for submitted, and no second working event if a task restarts after a crash', () => {
  const working = apply(taskIn('submitted'), changes['pick-up'])
  expect(apply(working, { kind: 'pick-up', lease: { holder: 'other', until: 9 } }).events).toHaveLength(1)
  expect(apply(taskIn('input-required'), changes.continue).events).toHaveLength(0)
})

test('counts starts per holder, undoes a start when it is released, and resets the count when a caller answers', () => {
  const claimed = { ...taskIn('submitted'), lease: { holder: 'us', until: 0 } }
  expect(apply(claimed, changes['pick-up']).starts).toBe(1)
  const again = apply(claimed, { kind: 'pick-up', lease: { holder: 'other', until: 9 } })
  expect(again.starts).toBe(2)
  expect(apply(again, changes.release)).toMatchObject({ starts: 1 })
  expect(apply(again, changes.release).lease).toBeUndefined()
  expect(apply(taskIn('auth-required'), changes.continue).starts).toBe(0)
})

test("gives the agent's messages the role assistant in the history and agent in the status", () => {
  const failed = apply(taskIn('working'), changes.fail)
  expect(failed.history.at(-1)).toMatchObject({ role: 'assistant' })
  expect(failed.status.message).toMatchObject({ role: 'agent' })
})

const child = { key: 'k', agent: 'calculator', taskId: 'c' }
const delegating = { ...taskIn('working'), authority: 'sealed', lease: { holder: 'us', until: 1 } }

test('a call of another agent is recorded without an event and without a change of the state or the lease', () => {
  const after = apply(delegating, { kind: 'children', children: [child] })
  expect(after).toEqual({ ...delegating, children: [child], updatedAt: after.updatedAt })
})

test.each([
  ['a child that runs', [child], true],
  ['a child that has ended', [{ ...child, ended: true as const }], false],
  ['a detached child', [{ ...child, detached: true as const }], false],
  ['a call whose task is unknown', [{ key: 'k' }], false],
  ['no children', [], false],
])('when a task with %s ends, its authority is kept only to cancel children', (_name, children, kept) => {
  const after = apply({ ...delegating, children }, changes.cancel)
  expect([after.authority, typeof after.dueAt]).toEqual(
    kept ? ['sealed', 'number'] : [undefined, 'undefined'],
  )
})

test('the children of an ended task are canceled until the change without a due time, which removes the authority', () => {
  const canceled = apply({ ...delegating, children: [child] }, changes.cancel)
  expect(apply(canceled, { kind: 'children', children: [child], dueAt: 7 })).toMatchObject({
    authority: 'sealed',
    dueAt: 7,
  })
  const done = apply(canceled, { kind: 'children', children: [{ ...child, ended: true }] })
  expect(done).not.toHaveProperty('authority')
  expect(done).not.toHaveProperty('dueAt')
  expect(done.events).toEqual(canceled.events)
})

test('a message replaces the authority and the deadline of the earlier one', () => {
  const paused = { ...taskIn('input-required'), authority: 'old', deadlineAt: 1 }
  expect(apply(paused, { ...changes.continue, terms: { authority: 'new' } })).toMatchObject({
    authority: 'new',
  })
  const without = apply(paused, changes.continue)
  expect([without.authority, without.deadlineAt]).toEqual([undefined, undefined])
})

test('progress: a numbered event with the message, which is the status message until the next change', () => {
  const leased: TaskRecord = { ...taskIn('working'), lease: { holder: 'us', until: 1 } }
  const after = apply(leased, changes.progress)
  expect(after).toMatchObject({
    status: { state: 'working', message },
    lease: leased.lease,
    history: [],
    events: [{ kind: 'status-update', sequence: 1, status: { state: 'working', message }, final: false }],
  })
  const { status, events } = apply(after, { ...changes.complete, message: undefined })
  expect(status).toEqual({ state: 'completed', timestamp: status.timestamp })
  expect(events.at(-1)).toMatchObject({ sequence: 4, status })
})
