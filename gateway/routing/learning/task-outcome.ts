import { isObject } from '@parley/wire/jsonrpc/envelope'

/** The terminal state of a task that was not cancelled. */
export interface TaskOutcome {
  state: 'completed' | 'failed'
  /** Time in milliseconds since 1970; absent when the agent did not report it. */
  at?: number
}

/** The outcome in a task or event; undefined for a running or cancelled task. */
export function taskOutcomeOf(source: unknown): TaskOutcome | undefined {
  const status = isObject(source) ? source['status'] : undefined
  if (!isObject(status)) return undefined
  const { state, timestamp } = status
  if (state !== 'completed' && state !== 'failed') return undefined
  const at = typeof timestamp === 'string' ? Date.parse(timestamp) : Number.NaN
  return Number.isNaN(at) ? { state } : { state, at }
}
