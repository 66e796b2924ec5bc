import { z } from 'zod'
import { isObject } from '../../jsonrpc/envelope.ts'
import { type Part, type Task, type TaskEnd, taskStates } from '../../model/task.ts'
import type {
  ListItem,
  ListOperation,
  MergedPage,
  MessageIds,
  ReadList,
  TaskReference,
  WireRequest,
  WireResult,
} from '../codec.ts'
import { part, uuid } from './message.ts'
import { wireObject } from './spelling.ts'

const taskOutput = wireObject({
  id: uuid,
  contextId: z.string().max(128),
  status: z.object({ state: z.enum(taskStates), timestamp: z.string().max(64) }),
  artifacts: z
    .array(
      wireObject({
        artifactId: z.string().max(128),
        name: z.string().max(1024).default(''),
        parts: z.array(part).max(1000),
      }),
    )
    .max(1000)
    .default([]),
})

export function readTaskOutput(json: unknown): Task | undefined {
  const task = taskOutput.safeParse(json).data
  return task && { ...task, history: [] }
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
  const message = isObject(params) ? params['message'] : undefined
  return messageIds.safeParse(message).data ?? {}
}

const references = wireObject({ referenceTaskIds: z.array(z.string().max(128)).max(100).optional() })

export function readReferences(params: unknown): string[] {
  const message = isObject(params) ? params['message'] : undefined
  return references.safeParse(message).data?.referenceTaskIds ?? []
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
