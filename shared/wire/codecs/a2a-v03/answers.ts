import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { Ids } from '../../model/ids.ts'
import {
  type Artifact,
  type Message,
  type Part,
  type Task,
  type TaskEnd,
  type TaskState,
  type TaskStatus,
  taskStates,
} from '../../model/task.ts'
import { timestampOfServer } from '../../model/timestamp.ts'
import type {
  ChainLink,
  MessageIds,
  ReadFrame,
  ReadList,
  SendAnswer,
  TaskReference,
  WireResult,
} from '../codec.ts'
import { withMetadata } from '../parley/answers.ts'
import { base64, jsonObject, uuid } from '../parley/message.ts'
import { wireObject } from '../parley/spelling.ts'
import { readError } from './errors.ts'
import { partOf } from './message.ts'

/**
 * Readers of answers from other servers of A2A 0.3 and 0.2, and of the reference implementation, which writes snake_case.
 * Servers omit `kind` in places, so the fields determine the kind of an object.
 */

const shortText = z.string().max(1024)
const metadata = jsonObject.exactOptional()
const extensions = z.array(z.string().max(2048)).max(100).exactOptional()

const fileContent = wireObject({
  name: shortText.exactOptional(),
  mimeType: z.string().max(256).exactOptional(),
  bytes: base64.exactOptional(),
  uri: z.string().max(2048).exactOptional(),
}).refine(({ bytes, uri }) => bytes !== undefined || uri !== undefined, 'must have bytes or a uri')

const part: z.ZodType<Part> = partOf(fileContent).transform(withSafeUri)

/** A URI that is not of the web becomes a text, so that no reader follows it. Bytes make a URI unnecessary. */
function withSafeUri(read: Part): Part {
  if (read.kind !== 'file') return read
  const { uri, ...file } = read.file
  if (uri === undefined) return read
  if (file.bytes !== undefined) return { ...read, file }
  if (/^https?:\/\//i.test(uri)) return read
  const { metadata: more } = read
  return {
    kind: 'text',
    text: uri,
    mediaType: 'text/uri-list',
    ...(more !== undefined && { metadata: more }),
  }
}

const artifact: z.ZodType<Artifact> = wireObject({
  artifactId: shortText,
  name: shortText.default(''),
  description: z.string().max(16_384).exactOptional(),
  parts: z.array(part).max(1000),
  extensions,
  metadata,
})

const message: z.ZodType<Message> = wireObject({
  role: z.enum(['user', 'agent', 'assistant', 'system']),
  parts: z.array(part).max(1000),
  messageId: shortText.default(''),
  contextId: shortText.default(''),
  taskId: shortText.default(''),
  referenceTaskIds: z.array(shortText).max(100).exactOptional(),
  extensions,
  metadata,
})

/** A task whose state its server does not know counts as running, so that its client continues to ask. */
const state: z.ZodType<TaskState> = z.preprocess(
  (given) => (given === 'unknown' ? 'working' : given),
  z.enum(taskStates),
)

const time = z.unknown().optional().transform(timestampOfServer)

const status: z.ZodType<TaskStatus> = wireObject({ state, timestamp: time, message: message.exactOptional() })

const output = {
  id: shortText.min(1),
  contextId: shortText.default(''),
  status,
  artifacts: z.array(artifact).max(1000).default([]),
}
const taskOutput = wireObject(output)
const wholeTask = wireObject({ ...output, history: z.array(message).max(10_000).default([]) })

export function readTaskOutput(json: unknown): Task | undefined {
  const task = taskOutput.safeParse(json).data
  return task && { ...task, history: [] }
}

export function readTask(json: unknown): Task | undefined {
  return wholeTask.safeParse(json).data
}

export function readSendResult(result: unknown): SendAnswer | undefined {
  const task = readTask(result)
  if (task !== undefined) return { kind: 'task', task }
  const read = message.safeParse(result).data
  return read && { kind: 'message', message: read }
}

const ofTask = { taskId: shortText.min(1), contextId: shortText.default('') }
const statusFrame = wireObject({ ...ofTask, status })
const artifactFrame = wireObject({
  ...ofTask,
  artifact,
  append: z.boolean().default(false),
  lastChunk: z.boolean().default(true),
})

export function readFrame(data: unknown): ReadFrame | undefined {
  const error = readError(data)
  if (error !== undefined) return { kind: 'error', error }
  const result = resultIn(data)
  const answer = readSendResult(result)
  if (answer !== undefined) return answer
  const ofStatus = statusFrame.safeParse(result).data
  if (ofStatus !== undefined) return { kind: 'status-update', ...ofStatus }
  const ofArtifact = artifactFrame.safeParse(result).data
  return ofArtifact && { kind: 'artifact-update', ...ofArtifact }
}

/** Returns the result of a JSON-RPC response; other JSON is returned unchanged. */
function resultIn(data: unknown): unknown {
  return isObject(data) && data['jsonrpc'] !== undefined ? data['result'] : data
}

export function readTaskReference(json: unknown, ids: Ids): TaskReference | undefined {
  const result = resultIn(json)
  if (!isObject(result)) return undefined
  const contextId = result['contextId'] ?? result['context_id']
  const taskId = result['kind'] === 'task' ? result['id'] : (result['taskId'] ?? result['task_id'])
  return {
    taskId: taskId ?? result['id'],
    contextId: typeof contextId === 'string' && contextId !== '' ? ids(contextId).id : contextId,
  }
}

export function readEnd(result: unknown): TaskEnd | undefined {
  const read = isObject(result) ? result['status'] : undefined
  if (!isObject(read)) return undefined
  const { state: end, timestamp: text } = read
  if (end !== 'completed' && end !== 'failed') return undefined
  const at = typeof text === 'string' ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? { state: end } : { state: end, at }
}

/** The last frame is a final update, or the task if it had ended before the stream began. */
export function readStreamEnd(frame: unknown): TaskEnd | undefined {
  const result = resultIn(frame)
  if (!isObject(result)) return undefined
  return result['final'] === true || result['kind'] === 'task' ? readEnd(result) : undefined
}

const id = shortText.min(1).optional().catch(undefined)
const messageIds = wireObject({ taskId: id, contextId: id })

export function readMessageIds(params: unknown, ids: Ids): MessageIds {
  const sent = isObject(params) ? params['message'] : undefined
  const { taskId, contextId } = messageIds.safeParse(sent).data ?? {}
  return {
    taskId: taskId === undefined ? undefined : (uuid.safeParse(taskId).data ?? taskId),
    contextId: contextId === undefined ? undefined : ids(contextId).id,
  }
}

const references = wireObject({ referenceTaskIds: z.array(shortText).max(100).optional() })

export function readReferences(params: unknown): string[] {
  const sent = isObject(params) ? params['message'] : undefined
  return references.safeParse(sent).data?.referenceTaskIds ?? []
}

export function writeChain(result: unknown, chain: readonly ChainLink[]): unknown {
  return withMetadata(result, { chain })
}

/** No operation of this dialect has a result without a task. */
export function isSuccess(): boolean {
  return false
}

/** This dialect has no lists. */
export function readList(): ReadList | undefined {
  return undefined
}

export function writeMergedList(_list: unknown, items: unknown[]): WireResult {
  return { json: items }
}
