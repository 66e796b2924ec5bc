import { isObject } from '@parley/wire/jsonrpc/envelope'

/** How a task ended by itself. */
export interface TaskOutcome {
  state: 'completed' | 'failed'
  /** When, in milliseconds since 1970; absent where that was not told. */
  at?: number
}

/** The end that the task, or the event, tells; undefined while there is none, and for a cancel. */
export function taskOutcomeOf(told: unknown): TaskOutcome | undefined {
  const status = isObject(told) ? told['status'] : undefined
  if (!isObject(status)) return undefined
  const { state, timestamp } = status
  if (state !== 'completed' && state !== 'failed') return undefined
  const at = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
  return Number.isNaN(at) ? { state } : { state, at }
}
