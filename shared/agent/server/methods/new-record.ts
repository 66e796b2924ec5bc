import type { TaskRecord } from '@parley/engine/store/store'
import type { MessageSend } from '@parley/wire/codecs/parley/params'
import type { Message, Task } from '@parley/wire/model/task'

/** A message that became work: the task as it stands in the store, and what lets it begin. */
export interface Accepted {
  record: TaskRecord
  /** Hands the task to the scheduler. Called once the answer, or the follower of a stream, is ready. */
  start: () => void
  /** Headers of the answer: the receipt of a payment. */
  headers?: Record<string, string>
}

export type NewTask = MessageSend & {
  taskId: string
  acceptedOutputModes: string[]
  /** Referenced tasks of other agents. */
  foreign: Task[]
}

/** A task in `submitted`, as it is first stored. */
export function newRecord(parts: {
  owner: string
  signed: boolean
  at: string
  contextId: string
  wanted: NewTask
}): TaskRecord {
  const { owner, signed, at, contextId, wanted } = parts
  return {
    id: wanted.taskId,
    contextId,
    owner,
    status: { state: 'submitted', timestamp: at },
    history: [messageOf(wanted.message, wanted.taskId, contextId)],
    artifacts: [],
    version: 0,
    events: [],
    createdAt: at,
    updatedAt: at,
    starts: 0,
    workedMs: 0,
    referenceTaskIds: wanted.message.referenceTaskIds ?? [],
    acceptedOutputModes: wanted.acceptedOutputModes,
    ...(signed && { signed }),
    ...(wanted.foreign.length > 0 && { foreignReferences: wanted.foreign }),
  }
}

/** The caller's message as sent, with the ids of the task it belongs to. */
export function messageOf(message: MessageSend['message'], taskId: string, contextId: string): Message {
  const { role, parts, messageId, referenceTaskIds, metadata } = message
  const kept: Message = { role, parts: parts as Message['parts'], messageId, contextId, taskId }
  if (referenceTaskIds !== undefined) kept.referenceTaskIds = referenceTaskIds
  if (metadata !== undefined) kept.metadata = metadata
  return kept
}
