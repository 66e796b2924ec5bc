import { randomUUID } from 'node:crypto'
import type { Artifact, Message, Part, TaskState } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import type { Store, TaskRecord } from './store.ts'

export const alice = 'did:parley:alice:agent:1'
export const bob = 'did:parley:bob:agent:2'

/** Returns a new task in the state `submitted`, in a new context unless one is given. */
export function sampleRecord(given: Partial<TaskRecord> = {}): TaskRecord {
  const id = given.id ?? randomUUID()
  const contextId = given.contextId ?? randomUUID()
  const at = timestamp()
  return {
    id,
    contextId,
    owner: alice,
    version: 0,
    status: { state: 'submitted', timestamp: at },
    history: [messageOf([{ kind: 'text', text: 'hello' }], { id, contextId })],
    artifacts: [],
    events: [],
    createdAt: at,
    updatedAt: at,
    starts: 0,
    workedMs: 0,
    referenceTaskIds: [],
    acceptedOutputModes: [],
    ...given,
  }
}

export function messageOf(parts: Part[], task: { id: string; contextId: string }): Message {
  return { role: 'user', parts, messageId: randomUUID(), contextId: task.contextId, taskId: task.id }
}

export function artifactOf(...parts: Part[]): Artifact {
  return { artifactId: randomUUID(), name: 'answer', parts }
}

/** Returns the record as it will be in its next commit. */
export function next(
  record: TaskRecord,
  state: TaskState = record.status.state,
  change: Partial<TaskRecord> = {},
) {
  const at = timestamp()
  const status = { state, timestamp: at }
  return { ...record, status, updatedAt: at, version: record.version + 1, ...change }
}

export async function created(store: Store, given: Partial<TaskRecord> = {}): Promise<TaskRecord> {
  const record = sampleRecord(given)
  if (!(await store.createTask(record))) throw new Error(`task ${record.id} was there already`)
  return record
}

/** Creates a task and brings it into the given state. */
export async function createdIn(
  store: Store,
  state: TaskState,
  given: Partial<TaskRecord> = {},
): Promise<TaskRecord> {
  const record = next(await created(store, given), state)
  if (!(await store.commitTask(record))) throw new Error(`task ${record.id} was changed`)
  return record
}
