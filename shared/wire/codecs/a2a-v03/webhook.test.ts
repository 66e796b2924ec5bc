import { expect, test } from 'vitest'
import type { StatusUpdate } from '../../model/event.ts'
import type { Task } from '../../model/task.ts'
import { webhookHeaders, writeWebhook } from './webhook.ts'

const status = { state: 'completed' as const, timestamp: '2026-11-22T08:39:37.397708+00:00' }
const task: Task = { id: 't', contextId: 'c', status, history: [], artifacts: [] }
const event: StatusUpdate = {
  kind: 'status-update',
  eventId: 'e',
  sequence: 1,
  timestamp: status.timestamp,
  taskId: 't',
  contextId: 'c',
  status,
  final: true,
}

test('a delivery carries the task', () => {
  expect(JSON.parse(writeWebhook(event, task))).toEqual({
    kind: 'task',
    id: 't',
    contextId: 'c',
    status,
    history: [],
    artifacts: [],
  })
})

test('the token is in the header of A2A, and the credentials are in Authorization', () => {
  const json = { 'content-type': 'application/json' }
  expect(webhookHeaders({})).toEqual(json)
  expect(webhookHeaders({ token: 't' })).toEqual({ ...json, 'x-a2a-notification-token': 't' })
  expect(webhookHeaders({ token: 't', credentials: { scheme: 'Basic', credentials: 'c' } })).toEqual({
    ...json,
    'x-a2a-notification-token': 't',
    authorization: 'Basic c',
  })
})
