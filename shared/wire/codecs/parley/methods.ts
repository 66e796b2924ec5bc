import type { z } from 'zod'
import type { ContextSummary, EventPage, Page } from '../../model/call.ts'
import { type DeprecationMark, deprecatedFields } from '../../model/deprecation.ts'
import type { Calls, Operation } from '../../model/operation.ts'
import type { MethodName, WireResult } from '../codec.ts'
import { cursorHeader } from './answers.ts'
import { cardOut } from './card.ts'
import { eventOut } from './events.ts'
import * as params from './params.ts'
import { pushConfigOut } from './push-config.ts'
import type { Unserialized, WireEventPage } from './shapes.ts'
import { taskOut } from './task.ts'

interface Row<O extends Operation> {
  method: string
  params: z.ZodType<Calls[O]['params']>
  result: (result: Calls[O]['result']) => unknown
  headers?: (result: Calls[O]['result']) => Record<string, string> | undefined
}

/** The name, the params and the result writer of every JSON-RPC method (spec/methods.md#method-table). */
const rows: { readonly [O in Operation]: Row<O> } = {
  sendMessage: { method: 'message/send', params: params.messageSend, result: taskOut },
  streamMessage: { method: 'message/stream', params: params.messageSend, result: streams },
  getTask: { method: 'tasks/get', params: params.taskGet, result: taskOut },
  listTasks: {
    method: 'tasks/list',
    params: params.tasksList,
    result: ({ items }) => items.map((task) => ({ ...taskOut(task), created_at: task.createdAt })),
    headers: cursorIn,
  },
  cancelTask: { method: 'tasks/cancel', params: params.taskCancel, result: taskOut },
  giveFeedback: {
    method: 'tasks/feedback',
    params: params.tasksFeedback,
    result: ({ taskId }) => ({ success: true, task_id: taskId, message: 'Feedback was recorded' }),
  },
  listTaskEvents: { method: 'tasks/events', params: params.taskEvents, result: eventPageOut },
  resubscribe: { method: 'tasks/resubscribe', params: params.taskResubscribe, result: streams },
  setPushConfig: {
    method: 'tasks/pushNotificationConfig/set',
    params: params.pushConfigSet,
    result: pushConfigOut,
  },
  getPushConfig: {
    method: 'tasks/pushNotificationConfig/get',
    params: params.pushConfigGet,
    result: pushConfigOut,
  },
  listPushConfigs: {
    method: 'tasks/pushNotificationConfig/list',
    params: params.pushConfigList,
    result: ({ items }) => items.map(pushConfigOut),
  },
  deletePushConfig: {
    method: 'tasks/pushNotificationConfig/delete',
    params: params.pushConfigDelete,
    result: (config) => config && pushConfigOut(config),
  },
  listContexts: {
    method: 'contexts/list',
    params: params.contextsList,
    result: ({ items }) => items.map(contextOut),
    headers: cursorIn,
  },
  clearContext: {
    method: 'contexts/clear',
    params: params.contextsClear,
    result: ({ contextId }) => ({ success: true, context_id: contextId, message: 'Context was cleared' }),
  },
  getExtendedCard: { method: 'agent/getAuthenticatedExtendedCard', params: params.noParams, result: cardOut },
}

/** Maps each method name to its operation. A method or its params can be marked as deprecated here. */
export const methods = new Map<string, MethodName>(
  Object.entries(operationsByName()).map(([name, operation]) => [name, { operation }]),
)

function operationsByName(): Record<string, Operation> {
  const byName: Record<string, Operation> = {}
  let operation: Operation
  for (operation in rows) byName[rows[operation].method] = operation
  return byName
}

export function methodOf(operation: Operation): string {
  return rows[operation].method
}

export function paramsSchema(operation: Operation): z.ZodType {
  return rows[operation].params
}

/** @throws ParleyError InvalidParams */
export function readParams<O extends Operation>(
  operation: O,
  given: Record<string, unknown>,
): Calls[O]['params'] {
  const row: Row<O> = rows[operation]
  return params.parseParams(row.params, given)
}

export function writeResult<O extends Operation>(operation: O, result: Calls[O]['result']): WireResult {
  const row: Row<O> = rows[operation]
  return { json: row.result(result), headers: row.headers?.(result) }
}

export function deprecations(method: string, given: Record<string, unknown>): DeprecationMark[] {
  const row = methods.get(method)
  if (row?.deprecated === undefined && row?.deprecatedParams === undefined) return []
  const fields = deprecatedFields(row.deprecatedParams ?? {}, given)
  return row.deprecated === undefined ? fields : [row.deprecated, ...fields]
}

function cursorIn({ nextCursor }: Page<unknown>): Record<string, string> | undefined {
  return nextCursor === undefined ? undefined : { [cursorHeader]: nextCursor }
}

function streams(): never {
  throw new Error('A stream has no result')
}

function eventPageOut({ taskId, events, lastSequence, more }: EventPage): Unserialized<WireEventPage> {
  return { task_id: taskId, events: events.map(eventOut), last_sequence: lastSequence, more }
}

function contextOut(context: ContextSummary) {
  return {
    context_id: context.id,
    kind: 'context',
    role: 'user',
    created_at: context.createdAt,
    updated_at: context.updatedAt,
    status: context.busy ? 'active' : 'idle',
    task_count: context.taskCount,
    task_ids: context.taskIds,
    tasks: context.taskIds,
  }
}
