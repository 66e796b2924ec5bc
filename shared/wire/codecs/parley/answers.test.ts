import { expect, test } from 'vitest'
import { readEnd, readList, readStreamEnd, readTaskReference } from './answers.ts'

const at = '2026-11-22T08:39:37.397708+00:00'

test.each([
  ['a running task', { status: { state: 'working', timestamp: at } }, undefined],
  ['a canceled task', { status: { state: 'canceled', timestamp: at } }, undefined],
  [
    'a completed task',
    { status: { state: 'completed', timestamp: at } },
    { state: 'completed', at: Date.parse(at) },
  ],
  ['a failed task without a time', { status: { state: 'failed' } }, { state: 'failed' }],
  ['a text', 'completed', undefined],
  ['a status that is not an object', { status: 'failed' }, undefined],
])('reads the end of %s', (_, result, end) => {
  expect(readEnd(result)).toEqual(end)
  expect(readStreamEnd(result)).toBeUndefined()
  expect(readStreamEnd(Object.assign(Object(result), { final: true }))).toEqual(end)
})

test('reads the reference of a task and of an event in either spelling', () => {
  const reference = { taskId: 't', contextId: 'c' }
  expect(readTaskReference({ id: 't', context_id: 'c' })).toEqual(reference)
  expect(readTaskReference({ id: 't', contextId: 'c' })).toEqual(reference)
  expect(readTaskReference({ task_id: 't', context_id: 'c' })).toEqual(reference)
  expect(readTaskReference([])).toBeUndefined()
})

test('a task without a creation time is sorted by the time of its status', () => {
  const old = { id: 't', status: { timestamp: at } }
  const task = { id: 't', created_at: '1', status: {} }
  const context = { context_id: 'c', updated_at: at }
  expect(readList('listTasks', [old, task], {})?.items).toEqual([
    { id: 't', at, json: old },
    { id: 't', at: '1', json: task },
  ])
  expect(readList('listContexts', [context], {})?.items).toEqual([{ id: 'c', at, json: context }])
  expect(readList('listTasks', {}, {})).toBeUndefined()
})
