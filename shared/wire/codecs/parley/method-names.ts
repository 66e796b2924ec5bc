import { type DeprecationMark, deprecatedFields } from '../../model/deprecation.ts'
import type { Operation } from '../../model/operation.ts'
import type { MethodName } from '../codec.ts'

const names: Record<Operation, string> = {
  sendMessage: 'message/send',
  streamMessage: 'message/stream',
  getTask: 'tasks/get',
  listTasks: 'tasks/list',
  cancelTask: 'tasks/cancel',
  giveFeedback: 'tasks/feedback',
  listTaskEvents: 'tasks/events',
  resubscribe: 'tasks/resubscribe',
  setPushConfig: 'tasks/pushNotificationConfig/set',
  getPushConfig: 'tasks/pushNotificationConfig/get',
  listPushConfigs: 'tasks/pushNotificationConfig/list',
  deletePushConfig: 'tasks/pushNotificationConfig/delete',
  listContexts: 'contexts/list',
  clearContext: 'contexts/clear',
  getExtendedCard: 'agent/getAuthenticatedExtendedCard',
}

/** The JSON-RPC methods (spec/methods.md#method-table); a row may mark its method or params as deprecated. */
export const methods = new Map<string, MethodName>(
  Object.entries(operationsByName()).map(([name, operation]) => [name, { operation }]),
)

function operationsByName(): Record<string, Operation> {
  const rows: Record<string, Operation> = {}
  let operation: Operation
  for (operation in names) rows[names[operation]] = operation
  return rows
}

export function methodOf(operation: Operation): string {
  return names[operation]
}

export function deprecations(method: string, params: Record<string, unknown>): DeprecationMark[] {
  const row = methods.get(method)
  if (row?.deprecated === undefined && row?.deprecatedParams === undefined) return []
  const fields = deprecatedFields(row.deprecatedParams ?? {}, params)
  return row.deprecated === undefined ? fields : [row.deprecated, ...fields]
}
