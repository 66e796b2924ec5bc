import type { z } from 'zod'
import { ParleyError } from '../../errors.ts'
import type { Ids } from '../../model/ids.ts'
import type { Calls, Operation } from '../../model/operation.ts'
import type { Task } from '../../model/task.ts'
import type { MethodName, WireResult } from '../codec.ts'
import { cardOut } from './card.ts'
import { taskIdOf } from './message.ts'
import * as params from './params.ts'
import { pushConfigOut, toPushConfig } from './push-config.ts'
import { statesShownAs } from './states.ts'
import { filled, messageOut, taskOut } from './task.ts'

interface Row<O extends Operation> {
  method: string
  /** @throws ParleyError InvalidParams, TaskNotFound */
  params: (given: Record<string, unknown>, ids: Ids) => Calls[O]['params']
  result: (result: Calls[O]['result']) => unknown
}

/** Undefined for an operation that the protocol lacks. */
const rows: { readonly [O in Operation]: Row<O> | undefined } = {
  sendMessage: {
    method: 'SendMessage',
    params: reader(params.sendMessageIn, params.toSendMessage),
    result: sent,
  },
  streamMessage: {
    method: 'SendStreamingMessage',
    params: reader(params.sendMessageIn, params.toSendMessage),
    result: streams,
  },
  getTask: {
    method: 'GetTask',
    params: reader(params.getTaskIn, ({ id, historyLength }) => ({ taskId: taskIdOf(id), historyLength })),
    result: taskOut,
  },
  listTasks: {
    method: 'ListTasks',
    params: reader(params.listTasksIn, (given, ids) => ({
      limit: given.pageSize,
      cursor: given.pageToken,
      contextId: given.contextId === undefined ? undefined : ids(given.contextId).id,
      states: given.status && statesShownAs(given.status),
      historyLength: given.historyLength,
      includeArtifacts: given.includeArtifacts,
      statusSince: given.statusTimestampAfter,
      order: 'status',
      count: true,
    })),
    result: ({ items, nextCursor, limit, total }) => ({
      tasks: items.map(taskOut),
      nextPageToken: nextCursor ?? '',
      pageSize: limit ?? items.length,
      totalSize: total ?? items.length,
    }),
  },
  cancelTask: {
    method: 'CancelTask',
    params: reader(params.taskIn, ({ id }) => ({ taskId: taskIdOf(id) })),
    result: taskOut,
  },
  giveFeedback: undefined,
  listTaskEvents: undefined,
  resubscribe: {
    method: 'SubscribeToTask',
    params: reader(params.taskIn, ({ id }) => ({ taskId: taskIdOf(id), requireOpen: true })),
    result: streams,
  },
  setPushConfig: {
    method: 'CreateTaskPushNotificationConfig',
    params: reader(params.createPushConfigIn, ({ taskId, ...config }, ids) => ({
      taskId: taskIdOf(taskId),
      // The webhook survives a restart of the server.
      longRunning: true,
      pushNotificationConfig: toPushConfig(config, ids),
    })),
    result: pushConfigOut,
  },
  getPushConfig: {
    method: 'GetTaskPushNotificationConfig',
    params: reader(params.pushConfigOfTask, ({ taskId, id }, ids) => ({
      taskId: taskIdOf(taskId),
      pushNotificationConfigId: ids(id).id,
    })),
    result: pushConfigOut,
  },
  listPushConfigs: {
    method: 'ListTaskPushNotificationConfigs',
    params: reader(params.listPushConfigsIn, ({ taskId, pageSize, pageToken }) => ({
      taskId: taskIdOf(taskId),
      ...(pageSize !== 0 && { limit: pageSize }),
      cursor: pageToken,
    })),
    result: ({ items, nextCursor }) => ({
      configs: filled(items)?.map(pushConfigOut),
      nextPageToken: nextCursor,
    }),
  },
  deletePushConfig: {
    method: 'DeleteTaskPushNotificationConfig',
    params: reader(params.pushConfigOfTask, ({ taskId, id }, ids) => ({
      taskId: taskIdOf(taskId),
      pushNotificationConfigId: ids(id).id,
      idempotent: true,
    })),
    result: () => ({}),
  },
  listContexts: undefined,
  clearContext: undefined,
  getExtendedCard: {
    method: 'GetExtendedAgentCard',
    params: reader(params.noParams, () => ({})),
    result: cardOut,
  },
}

function reader<Schema extends z.ZodType, Params>(
  schema: Schema,
  convert: (parsed: z.output<Schema>, ids: Ids) => Params,
) {
  return (given: Record<string, unknown>, ids: Ids): Params => convert(params.parseParams(schema, given), ids)
}

/** An agent may answer with a message instead of the task, unless the task has receipts. */
function sent(task: Task) {
  const { state, message, payment } = task.status
  const isMessage = task.answersByMessage === true && state === 'completed' && payment === undefined
  return isMessage && message !== undefined ? { message: messageOut(message) } : { task: taskOut(task) }
}

function streams(): never {
  throw new Error('A stream has no result')
}

export const methods = new Map<string, MethodName>(
  Object.entries(operationsByName()).map(([name, operation]) => [name, { operation }]),
)

function operationsByName(): Record<string, Operation> {
  const byName: Record<string, Operation> = {}
  let operation: Operation
  for (operation in rows) {
    const method = rows[operation]?.method
    if (method !== undefined) byName[method] = operation
  }
  return byName
}

/** @throws ParleyError UnsupportedOperation */
function rowOf<O extends Operation>(operation: O): Row<O> {
  const row: Row<O> | undefined = rows[operation]
  if (row !== undefined) return row
  throw new ParleyError('UnsupportedOperation', { message: `A2A has no method for ${operation}` })
}

/** @throws ParleyError UnsupportedOperation */
export function methodOf(operation: Operation): string {
  return rowOf(operation).method
}

/** @throws ParleyError InvalidParams, TaskNotFound, UnsupportedOperation */
export function readParams<O extends Operation>(
  operation: O,
  given: Record<string, unknown>,
  ids: Ids,
): Calls[O]['params'] {
  return rowOf(operation).params(given, ids)
}

/** @throws ParleyError UnsupportedOperation */
export function writeResult<O extends Operation>(operation: O, result: Calls[O]['result']): WireResult {
  return { json: rowOf(operation).result(result) }
}
