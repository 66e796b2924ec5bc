import { expect, test } from 'vitest'
import type { ArtifactDelta } from '../../model/event.ts'
import { a2aV1 } from './dialect.ts'
import { rest } from './rest.ts'
import {
  artifact,
  artifactUpdate,
  at,
  context,
  received,
  statusUpdate,
  task,
  taskId,
  taskJson,
} from './sample.cases.ts'

const ids = { taskId, contextId: 'talk/1' }
const statusJson = {
  statusUpdate: { ...ids, status: { state: 'TASK_STATE_WORKING', timestamp: '2026-11-22T08:39:37.397Z' } },
}
const [artifactJson] = taskJson.artifacts
const delta: ArtifactDelta = { ...context, taskId, kind: 'artifact-delta', timestamp: at, artifact }

test('each frame is a JSON-RPC response with the ID of the request, and the first one has the task', () => {
  for (const id of ['request', 7, null]) {
    const stream = a2aV1.openStream(id)
    const frame = stream.write({ kind: 'present-task', task, sequence: 1 })
    expect(received(frame)).toEqual({ id: 1, data: { jsonrpc: '2.0', id, result: { task: taskJson } } })
    expect(received(stream.write(statusUpdate))).toEqual({
      id: 2,
      data: { jsonrpc: '2.0', id, result: statusJson },
    })
  }
})

test('a whole artifact replaces its pieces, of which the later ones are appended', () => {
  const stream = rest.openStream()
  const update = (append: boolean, lastChunk: boolean) => ({
    artifactUpdate: { ...ids, artifact: artifactJson, append, lastChunk },
  })
  expect(received(stream.write(delta))).toEqual({ data: update(false, false) })
  expect(received(stream.write(delta))).toEqual({ data: update(true, false) })
  expect(received(stream.write({ ...delta, artifact: { ...artifact, artifactId: 'other' } }))).toHaveProperty(
    'data.artifactUpdate.append',
    false,
  )
  expect(received(stream.write(artifactUpdate))).toEqual({ id: 3, data: update(false, true) })
})

test('a webhook delivery is a StreamResponse of the media type of the protocol', () => {
  expect(JSON.parse(a2aV1.writeWebhook(statusUpdate, task))).toEqual(statusJson)
  expect(JSON.parse(a2aV1.writeWebhook(artifactUpdate, task))).toHaveProperty(
    'artifactUpdate.lastChunk',
    true,
  )
  expect(a2aV1.webhookHeaders({})).toEqual({ 'content-type': 'application/a2a+json' })
})

test('a delivery carries the credentials, or else the token', () => {
  const credentials = { scheme: 'Basic', credentials: 'dTpw' }
  expect(a2aV1.webhookHeaders({ token: 't' })).toHaveProperty('x-a2a-notification-token', 't')
  expect(a2aV1.webhookHeaders({ token: 't', credentials })).toEqual({
    'content-type': 'application/a2a+json',
    authorization: 'Basic dTpw',
  })
  expect(
    a2aV1.webhookHeaders({ token: 't', credentials: { scheme: 'Bearer', credentials: '' } }),
  ).toHaveProperty('x-a2a-notification-token', 't')
})
