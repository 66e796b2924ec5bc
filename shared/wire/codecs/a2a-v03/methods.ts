import { ParleyError } from '../../errors.ts'
import type { Ids } from '../../model/ids.ts'
import type { Calls, Operation } from '../../model/operation.ts'
import type { MethodName, WireResult } from '../codec.ts'
import { cardOut } from './card.ts'
import * as params from './params.ts'
import { taskPushConfigOut } from './push-config.ts'
import { answerOut, taskOut } from './task.ts'

interface Row<O extends Operation> {
  method: string
  params: (given: Record<string, unknown>, ids: Ids) => Calls[O]['params']
  result: (result: Calls[O]['result']) => unknown
}

/** The name, the params and the result writer of every method of A2A 0.3 (spec/a2a.md#03-methods). */
const rows: { readonly [O in Operation]?: Row<O> } = {
  sendMessage: { method: 'message/send', params: params.sendMessage, result: answerOut },
  streamMessage: { method: 'message/stream', params: params.sendMessage, result: streams },
  getTask: { method: 'tasks/get', params: params.getTask, result: taskOut },
  cancelTask: { method: 'tasks/cancel', params: params.ofOneTask, result: taskOut },
  resubscribe: { method: 'tasks/resubscribe', params: params.ofOneTask, result: streams },
  setPushConfig: {
    method: 'tasks/pushNotificationConfig/set',
    params: params.setPushConfig,
    result: taskPushConfigOut,
  },
  getPushConfig: {
    method: 'tasks/pushNotificationConfig/get',
    params: params.getPushConfig,
    result: taskPushConfigOut,
  },
  listPushConfigs: {
    method: 'tasks/pushNotificationConfig/list',
    params: params.ofOneTask,
    result: ({ items }) => items.map(taskPushConfigOut),
  },
  deletePushConfig: {
    method: 'tasks/pushNotificationConfig/delete',
    params: params.deletePushConfig,
    result: () => null,
  },
  getExtendedCard: {
    method: 'agent/getAuthenticatedExtendedCard',
    params: () => ({}),
    result: (card) => cardOut(card),
  },
}

export const methods = new Map<string, MethodName>(
  Object.entries(operationsByName()).map(([name, operation]) => [name, { operation }]),
)

function operationsByName(): Record<string, Operation> {
  const byName: Record<string, Operation> = {}
  let operation: Operation
  for (operation in rows) byName[methodOf(operation)] = operation
  return byName
}

/** @throws ParleyError UnsupportedOperation if A2A 0.3 has no method for the operation */
export function methodOf(operation: Operation): string {
  return rowOf(operation).method
}

/** @throws ParleyError InvalidParams, TaskNotFound */
export function readParams<O extends Operation>(
  operation: O,
  given: Record<string, unknown>,
  ids: Ids,
): Calls[O]['params'] {
  return rowOf(operation).params(given, ids)
}

export function writeResult<O extends Operation>(operation: O, result: Calls[O]['result']): WireResult {
  return { json: rowOf(operation).result(result) }
}

function rowOf<O extends Operation>(operation: O): Row<O> {
  const row: Row<O> | undefined = rows[operation]
  if (row !== undefined) return row
  throw new ParleyError('UnsupportedOperation', { message: `A2A 0.3 has no method for ${operation}` })
}

function streams(): never {
  throw new Error('A stream has no result')
}
