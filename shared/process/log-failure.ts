import type { ParleyError } from '../jsonrpc/errors.ts'
import type { Log } from './log.ts'

/**
 * Tells the log of an answer with a status of 500 or more, with what caused it. That a process that stops takes nothing
 * new is no failure: one line without a stack.
 */
export function logFailure(log: Log, error: ParleyError, more: Record<string, unknown> = {}): void {
  const { reason } = error.data
  if (reason === 'draining') log.info({ ...more, reason }, error.message)
  else log.error({ err: error.cause ?? error, ...more }, error.message)
}
