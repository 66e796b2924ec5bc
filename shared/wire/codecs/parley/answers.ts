import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'
import {
  type Artifact,
  type Message,
  type Part,
  type Task,
  type TaskEnd,
  type TaskStatus,
  taskStates,
} from '../../model/task.ts'
import { timestamp } from '../../model/timestamp.ts'
import type {
  ChainLink,
  ListItem,
  ListOperation,
  MergedPage,
  MessageIds,
  ReadList,
  SendAnswer,
  TaskReference,
  WireRequest,
  WireResult,
} from '../codec.ts'
import { jsonObject, part, uuid } from './message.ts'
import { wireObject } from './spelling.ts'

const shortText = z.string().max(128)
const metadata = jsonObject.exactOptional()

const artifact: z.ZodType<Artifact> = wireObject({
  artifactId: shortText,
  name: z.string().max(1024).default(''),
  description: z.string().max(16_384).exactOptional(),
  parts: z.array(part).max(1000),
  metadata,
})

const message: z.ZodType<Message> = wireObject({
  role: z.enum(['user', 'agent', 'assistant', 'system']),
  parts: z.array(part).max(1000),
  messageId: shortText.default(''),
  contextId: shortText.default(''),
  taskId: shortText.default(''),
  referenceTaskIds: z.array(shortText).max(100).exactOptional(),
  metadata,
})

const status: z.ZodType<TaskStatus> = z.object({
  state: z.enum(taskStates),
  timestamp: z.string().max(64).default(timestamp),
  message: message.exactOptional(),
})

const output = {
  id: uuid,
  contextId: shortText,
  status: z.object({ state: z.enum(taskStates), timestamp: z.string().max(64) }),
  artifacts: z.array(artifact).max(1000).default([]),
}
const taskOutput = wireObject(output)
const wholeTask = wireObject({ ...output, status, history: z.array(message).max(10_000).default([]) })

export function readTaskOutput(json: unknown): Task | undefined {
  const task = taskOutput.safeParse(json).data
  return task && { ...task, history: [] }
}

export function readTask(json: unknown): Task | undefined {
  return wholeTask.safeParse(json).data
}

export function readStatus(json: unknown): TaskStatus | undefined {
  return status.safeParse(json).data
}

export function readArtifact(json: unknown): Artifact | undefined {
  return artifact.safeParse(json).data
}

/** Agents of this dialect answer with a task; others may answer with a message. */
export function readSendResult(result: unknown): SendAnswer | undefined {
  const task = readTask(result)
  if (task !== undefined) return { kind: 'task', task }
  const read = message.safeParse(result).data
  return read && { kind: 'message', message: read }
}

const parts = z.array(part).max(100_000)

/** Returns the parts of a received message or artifact; an empty list if the JSON is malformed. */
export function readParts(json: unknown): Part[] {
  return parts.safeParse(json).data ?? []
}

/** The cursor of the next page is in a header, because a list's result is an array (spec/methods.md#taskslist). */
export const cursorHeader = 'x-next-cursor'

/** Agents of the reference implementation answer in camelCase. */
export function readTaskReference(json: unknown): TaskReference | undefined {
  if (!isObject(json)) return undefined
  return { taskId: json['id'] ?? json['task_id'], contextId: json['context_id'] ?? json['contextId'] }
}

export function readEnd(result: unknown): TaskEnd | undefined {
  const status = isObject(result) ? result['status'] : undefined
  if (!isObject(status)) return undefined
  const { state, timestamp } = status
  if (state !== 'completed' && state !== 'failed') return undefined
  const at = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
  return Number.isNaN(at) ? { state } : { state, at }
}

export function readStreamEnd(frame: unknown): TaskEnd | undefined {
  return isObject(frame) && frame['final'] === true ? readEnd(frame) : undefined
}

const id = z.string().max(128).optional().catch(undefined)
const messageIds = wireObject({ taskId: id, contextId: id })

export function readMessageIds(params: unknown): MessageIds {
  const sent = isObject(params) ? params['message'] : undefined
  return messageIds.safeParse(sent).data ?? {}
}

const references = wireObject({ referenceTaskIds: z.array(z.string().max(128)).max(100).optional() })

export function readReferences(params: unknown): string[] {
  const sent = isObject(params) ? params['message'] : undefined
  return references.safeParse(sent).data?.referenceTaskIds ?? []
}

export function writeChain(result: unknown, chain: readonly ChainLink[]): unknown {
  const links = chain.map(({ position, agent, taskId, state }) => ({
    position,
    ...(agent !== undefined && { agent }),
    ...(taskId !== undefined && { task_id: taskId }),
    state,
  }))
  return withMetadata(result, { chain: links })
}

/** Adds fields to the metadata of a task or message. */
export function withMetadata(json: unknown, more: Record<string, unknown>): unknown {
  if (!isObject(json)) return json
  const before = isObject(json['metadata']) ? json['metadata'] : {}
  return { ...json, metadata: { ...before, ...more } }
}

export function isSuccess(result: unknown): boolean {
  return isObject(result) && result['success'] === true
}

export function readList(
  list: ListOperation,
  result: unknown,
  headers: WireRequest['headers'],
): ReadList | undefined {
  if (!Array.isArray(result)) return undefined
  const next = headers[cursorHeader]
  return {
    items: result.map((json) => ({ ...readListItem(list, json), json })),
    nextCursor: typeof next === 'string' ? next : undefined,
  }
}

export function writeMergedList(
  _list: ListOperation,
  items: unknown[],
  { nextCursor }: MergedPage,
): WireResult {
  return { json: items, headers: nextCursor === undefined ? undefined : { [cursorHeader]: nextCursor } }
}

/** Earlier versions of agents do not report when a task was created. */
function readListItem(list: ListOperation, json: unknown): ListItem {
  const item = isObject(json) ? json : {}
  if (list === 'listContexts') return { id: String(item['context_id']), at: String(item['updated_at']) }
  const { status, created_at: createdAt } = item
  const at = createdAt ?? (isObject(status) ? status['timestamp'] : '')
  return { id: String(item['id']), at: String(at) }
}
