import { isObject } from '../../shared/jsonrpc/envelope.ts'

/** Whether the task, or the event, says that the task has come to an end of its own. */
export function endOf(told: unknown): 'completed' | 'failed' | undefined {
  const status = isObject(told) ? told['status'] : undefined
  const state = isObject(status) ? status['state'] : undefined
  return state === 'completed' || state === 'failed' ? state : undefined
}
