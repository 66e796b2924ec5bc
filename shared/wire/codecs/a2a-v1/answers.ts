import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { Ids } from '../../model/ids.ts'
import type { Artifact, Message, Task, TaskEnd, TaskStatus } from '../../model/task.ts'
import { timestampOfServer } from '../../model/timestamp.ts'
import type {
  ChainLink,
  ListItem,
  ListOperation,
  MergedPage,
  MessageIds,
  ReadFrame,
  ReadList,
  SendAnswer,
  TaskReference,
  WireResult,
} from '../codec.ts'
import { withMetadata } from '../parley/answers.ts'
import { readError } from './errors.ts'
import { extensionsIn, partOfServer, struct } from './message.ts'
import { fieldOf, optionalText, protoObject } from './proto-json.ts'
import { roleIn, stateIn } from './states.ts'

/** Readers for clients and gateways. The values are those of another server, so their sizes are limited. */

const idText = z.string().max(1024)
const idOrEmpty = idText.default('')
/** ProtoJSON leaves out empty lists. */
const parts = z.array(partOfServer).max(1000).default([])

const messageOfServer = protoObject({
  messageId: idOrEmpty,
  contextId: idOrEmpty,
  taskId: idOrEmpty,
  role: roleIn.optional(),
  parts,
  metadata: struct.optional(),
  extensions: extensionsIn,
  referenceTaskIds: z.array(idText).max(100).optional(),
}).transform(({ role = 'agent', metadata, extensions = [], referenceTaskIds = [], ...rest }): Message => {
  const message: Message = { ...rest, role }
  if (metadata !== undefined) message.metadata = metadata
  if (extensions.length > 0) message.extensions = extensions
  if (referenceTaskIds.length > 0) message.referenceTaskIds = referenceTaskIds
  return message
})

const artifactOfServer = protoObject({
  artifactId: idText.min(1),
  name: z.string().max(1024).default(''),
  description: optionalText(16_384),
  parts,
  metadata: struct.optional(),
  extensions: extensionsIn,
}).transform(({ description, metadata, extensions = [], ...rest }): Artifact => {
  const artifact: Artifact = rest
  if (description !== undefined) artifact.description = description
  if (metadata !== undefined) artifact.metadata = metadata
  if (extensions.length > 0) artifact.extensions = extensions
  return artifact
})

/** A state that the server does not specify counts as one in which it works. */
const statusOfServer = protoObject({
  state: stateIn.optional(),
  timestamp: z.unknown().optional().transform(timestampOfServer),
  message: messageOfServer.optional(),
}).transform(({ state = 'working', timestamp: at, message }): TaskStatus => {
  const status: TaskStatus = { state, timestamp: at }
  if (message !== undefined) status.message = message
  return status
})

const output = {
  id: idText.min(1),
  contextId: idOrEmpty,
  status: statusOfServer,
  artifacts: z.array(artifactOfServer).max(1000).default([]),
}
const taskOutput = protoObject(output)
const wholeTask = protoObject({ ...output, history: z.array(messageOfServer).max(10_000).default([]) })
const statusUpdate = protoObject({ taskId: idText.min(1), contextId: idOrEmpty, status: statusOfServer })
const artifactUpdate = protoObject({
  taskId: idText.min(1),
  contextId: idOrEmpty,
  artifact: artifactOfServer,
  append: z.boolean().default(false),
  lastChunk: z.boolean().default(false),
})

export function readTaskOutput(json: unknown): Task | undefined {
  const task = taskOutput.safeParse(json).data
  return task && { ...task, history: [] }
}

export function readTask(json: unknown): Task | undefined {
  return wholeTask.safeParse(json).data
}

export function readSendResult(result: unknown): SendAnswer | undefined {
  if (!isObject(result)) return undefined
  const task = read(wholeTask, result['task'])
  if (task !== undefined) return { kind: 'task', task }
  const message = read(messageOfServer, result['message'])
  return message === undefined || message.parts.length === 0 ? undefined : { kind: 'message', message }
}

export function readFrame(data: unknown): ReadFrame | undefined {
  const error = readError(data)
  if (error !== undefined) return { kind: 'error', error }
  const response = responseIn(data)
  const update = read(statusUpdate, updateIn(response, 'statusUpdate', 'status-update'))
  if (update !== undefined) return { kind: 'status-update', ...update }
  const artifact = read(artifactUpdate, updateIn(response, 'artifactUpdate', 'artifact-update'))
  if (artifact !== undefined) return { kind: 'artifact-update', ...artifact }
  return readSendResult(response)
}

/** An absent field costs nothing. */
function read<Schema extends z.ZodType>(schema: Schema, json: unknown): z.output<Schema> | undefined {
  return json === undefined ? undefined : schema.safeParse(json).data
}

/** LangGraph sends updates in the form of 0.3: without a wrapper and with `kind`. */
function updateIn(response: unknown, name: string, kind: string): unknown {
  const isUnwrapped = isObject(response) && response['kind'] === kind
  return isUnwrapped ? response : fieldOf(response, name)
}

/** Returns the StreamResponse of a frame with or without a JSON-RPC envelope. */
function responseIn(data: unknown): unknown {
  return isObject(data) && Object.hasOwn(data, 'jsonrpc') ? data['result'] : data
}

/** Reads the IDs of a task, also in an answer to a message or in a frame, and those of a message or an update. */
export function readTaskReference(json: unknown, ids: Ids): TaskReference | undefined {
  const response = responseIn(json)
  if (!isObject(response)) return undefined
  const wrapped = ['task', 'message', 'statusUpdate', 'artifactUpdate'].map((name) => fieldOf(response, name))
  const subject = wrapped.find(isObject) ?? response
  const contextId = fieldOf(subject, 'contextId')
  return {
    taskId: fieldOf(subject, 'taskId') ?? fieldOf(subject, 'id'),
    contextId: typeof contextId === 'string' && contextId !== '' ? ids(contextId).id : contextId,
  }
}

const statusEnd = protoObject({ state: stateIn, timestamp: z.string().optional().catch(undefined) })

/** @param result a task, also in an answer to a message */
export function readEnd(result: unknown): TaskEnd | undefined {
  const status = fieldOf(fieldOf(result, 'task') ?? result, 'status')
  const { state, timestamp: text = '' } = statusEnd.safeParse(status).data ?? {}
  if (state !== 'completed' && state !== 'failed') return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? { state } : { state, at }
}

/** A frame with an ended task is the last one. */
export function readStreamEnd(frame: unknown): TaskEnd | undefined {
  const response = responseIn(frame)
  return readEnd(fieldOf(response, 'statusUpdate') ?? fieldOf(response, 'task'))
}

const messageIds = protoObject({
  taskId: optionalText(256).catch(undefined),
  contextId: optionalText(256).catch(undefined),
})

export function readMessageIds(params: unknown, ids: Ids): MessageIds {
  const { taskId, contextId } = messageIds.safeParse(fieldOf(params, 'message')).data ?? {}
  return { taskId: idIn(taskId, ids), contextId: idIn(contextId, ids) }
}

function idIn(given: string | undefined, ids: Ids): string | undefined {
  return given === undefined ? undefined : ids(given).id
}

const references = protoObject({ referenceTaskIds: z.array(z.string().max(256)).max(100).optional() })

export function readReferences(params: unknown): string[] {
  return references.safeParse(fieldOf(params, 'message')).data?.referenceTaskIds ?? []
}

export function writeChain(result: unknown, chain: readonly ChainLink[]): unknown {
  if (!isObject(result)) return result
  const kind = isObject(result['task']) ? 'task' : 'message'
  return { ...result, [kind]: withMetadata(result[kind], { chain }) }
}

/** The protocol has no results without a task. */
export function isSuccess(): boolean {
  return false
}

const page = protoObject({
  tasks: z.array(z.unknown()).default([]),
  nextPageToken: optionalText(4096),
  totalSize: z.int().min(0).optional().catch(undefined),
})

/** Tasks are sorted by the time of their status. */
export function readList(list: ListOperation, result: unknown): ReadList | undefined {
  const read = list === 'listTasks' ? page.safeParse(result).data : undefined
  return (
    read && {
      items: read.tasks.map((json) => ({ ...readListItem(json), json })),
      nextCursor: read.nextPageToken,
      total: read.totalSize,
    }
  )
}

function readListItem(json: unknown): ListItem {
  return { id: String(fieldOf(json, 'id')), at: String(fieldOf(fieldOf(json, 'status'), 'timestamp')) }
}

export function writeMergedList(
  _list: ListOperation,
  tasks: unknown[],
  { nextCursor = '', limit, total }: MergedPage,
): WireResult {
  return { json: { tasks, nextPageToken: nextCursor, pageSize: limit, totalSize: total } }
}
