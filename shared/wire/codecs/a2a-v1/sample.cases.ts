import type { ArtifactUpdate, StatusUpdate } from '../../model/event.ts'
import type { Artifact, Message, Task } from '../../model/task.ts'

/** A task with every field, and its JSON in A2A 1.0. */

export const taskId = '0f2d1a83-4a2b-4bb5-8dd1-0f8a3a6a2c22'
export const at = '2026-11-22T08:39:37.397708+00:00'
export const context = { contextId: '5d2d1a83-4a2b-4bb5-8dd1-0f8a3a6a2c11', contextName: 'talk/1' }

export const message: Message = {
  ...context,
  taskId,
  role: 'user',
  messageId: '1f2d1a83-4a2b-4bb5-8dd1-0f8a3a6a2c33',
  messageName: 'msg-1',
  parts: [
    { kind: 'text', text: 'half', mediaType: 'text/markdown' },
    { kind: 'data', data: { of: 2 }, filename: 'two.json' },
    { kind: 'data', data: { value: [1, null] }, metadata: { data_part_compat: true } },
    { kind: 'file', file: { bytes: 'AAAA', name: 'a.bin', mimeType: 'application/zip' } },
    { kind: 'file', file: { uri: 'https://example.com/a' }, metadata: { page: 1 } },
  ],
  metadata: { hurry: true },
  extensions: ['https://example.com/ext/v1'],
  referenceTaskIds: [taskId],
}

export const messageJson = {
  messageId: 'msg-1',
  contextId: 'talk/1',
  taskId,
  role: 'ROLE_USER',
  parts: [
    { text: 'half', mediaType: 'text/markdown' },
    { data: { of: 2 }, filename: 'two.json' },
    { data: [1, null] },
    { raw: 'AAAA', filename: 'a.bin', mediaType: 'application/zip' },
    { url: 'https://example.com/a', metadata: { page: 1 } },
  ],
  metadata: { hurry: true },
  extensions: ['https://example.com/ext/v1'],
  referenceTaskIds: [taskId],
}

export const artifact: Artifact = {
  artifactId: 'report',
  name: 'Report',
  description: 'The figures',
  parts: [{ kind: 'text', text: '1' }],
  metadata: { pages: 1 },
  extensions: ['https://example.com/ext/v1'],
}

export const task: Task = {
  ...context,
  id: taskId,
  status: { state: 'completed', timestamp: at, message: { ...message, role: 'assistant' } },
  history: [message],
  artifacts: [artifact],
}

export const taskJson = {
  id: taskId,
  contextId: 'talk/1',
  status: {
    state: 'TASK_STATE_COMPLETED',
    timestamp: '2026-11-22T08:39:37.397Z',
    message: { ...messageJson, role: 'ROLE_AGENT' },
  },
  artifacts: [artifactJson()],
  history: [messageJson],
}

function artifactJson() {
  const { parts: _parts, ...rest } = artifact
  return { ...rest, parts: [{ text: '1' }] }
}

const envelope = { ...context, taskId, eventId: '2f2d1a83-4a2b-4bb5-8dd1-0f8a3a6a2c44', timestamp: at }

export const statusUpdate: StatusUpdate = {
  ...envelope,
  kind: 'status-update',
  sequence: 2,
  status: { state: 'working', timestamp: at },
  final: false,
}

export const artifactUpdate: ArtifactUpdate = { ...envelope, kind: 'artifact-update', sequence: 3, artifact }

/** Returns the JSON as a receiver parses it. */
export function received(json: unknown): unknown {
  return JSON.parse(JSON.stringify(json))
}
