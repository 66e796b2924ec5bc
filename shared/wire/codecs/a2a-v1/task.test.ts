import { expect, test } from 'vitest'
import type { Part, Task, TaskState } from '../../model/task.ts'
import { taskStates } from '../../model/task.ts'
import { LazyPart } from '../lazy-part.ts'
import { at, received, task, taskId, taskJson } from './sample.cases.ts'
import { stateOut } from './states.ts'
import { partOut, taskOut } from './task.ts'

test('a task is written with exactly the fields of the protocol', () => {
  expect(received(taskOut(task))).toEqual(taskJson)
})

test('empty lists, empty names and absent fields are left out', () => {
  const bare: Task = {
    contextId: 'c',
    id: taskId,
    status: { state: 'submitted', timestamp: at },
    history: [],
    artifacts: [],
  }
  expect(received(taskOut(bare))).toEqual({
    id: taskId,
    contextId: 'c',
    status: { state: 'TASK_STATE_SUBMITTED', timestamp: '2026-11-22T08:39:37.397Z' },
  })
  const artifact = { artifactId: 'a', name: '', parts: [], extensions: [] }
  expect(received(taskOut({ ...bare, artifacts: [artifact] }))).toHaveProperty('artifacts', [
    { artifactId: 'a', parts: [] },
  ])
})

test('every state has a name of the protocol, and the two without one wait for input', () => {
  const names = Object.fromEntries(taskStates.map((state) => [state, stateOut(state)]))
  expect(names).toEqual({
    submitted: 'TASK_STATE_SUBMITTED',
    working: 'TASK_STATE_WORKING',
    'input-required': 'TASK_STATE_INPUT_REQUIRED',
    'auth-required': 'TASK_STATE_AUTH_REQUIRED',
    'payment-required': 'TASK_STATE_INPUT_REQUIRED',
    'negotiation-bid-submitted': 'TASK_STATE_INPUT_REQUIRED',
    completed: 'TASK_STATE_COMPLETED',
    failed: 'TASK_STATE_FAILED',
    canceled: 'TASK_STATE_CANCELED',
    rejected: 'TASK_STATE_REJECTED',
  })
})

test.each<[TaskState, string, string]>([
  ['payment-required', 'x402.payment.status', 'payment-required'],
  ['negotiation-bid-submitted', 'parley.negotiation.status', 'bid-submitted'],
])('the message of the pause %s names it in its metadata', (state, key, value) => {
  const paused = (message: Task['status']['message']) =>
    received(taskOut({ ...task, status: { state, timestamp: at, ...(message && { message }) } }))
  const given = task.status.message
  expect(paused(given)).toHaveProperty('status.message.metadata', { hurry: true, [key]: value })
  const without = paused(undefined)
  expect(without).toMatchObject({
    status: { message: { role: 'ROLE_AGENT', taskId, contextId: 'talk/1', metadata: { [key]: value } } },
  })
  expect(paused(undefined)).toEqual(without)
})

test('the parent and the children of a task are in its metadata', () => {
  const parent = { agent: 'planner', taskId }
  const linked: Task = {
    ...task,
    parent,
    rootTaskId: taskId,
    children: [{ agent: 'x' }, { agent: 'y', taskId }],
  }
  expect(received(taskOut(linked))).toHaveProperty('metadata', {
    parent,
    rootTaskId: taskId,
    children: [{ agent: 'y', taskId }],
  })
})

test('a part that is loaded later passes through unchanged', () => {
  const lazy = new LazyPart(9, async () => ({ kind: 'text', text: 'x' })) as unknown as Part
  expect(partOut(lazy)).toBe(lazy)
})
