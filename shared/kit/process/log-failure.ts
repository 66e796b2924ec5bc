import type { ParleyError } from '@parley/wire/errors'
import { errorCode } from '../net/error-code.ts'
import type { Log } from './log.ts'

/** Reasons for failures caused by an agent behind the gateway or by a caller, not by this process. */
const externalReasons = new Set<unknown>([
  'agent_down',
  'agent_slow',
  'agent_broke_off',
  'outcome_unknown',
  'unread_answers',
])

/**
 * Logs a response with a status of 500 or more, with its cause. Failures caused by others are logged as one warning
 * without a stack, and rejections during shutdown at level info.
 */
export function logFailure(log: Log, error: ParleyError, more: Record<string, unknown> = {}): void {
  const { reason, agent } = error.data
  if (reason === 'draining') log.info({ ...more, reason }, error.message)
  else if (externalReasons.has(reason)) {
    const code = errorCode(error.cause)
    log.warn({ ...more, reason, agent, code: typeof code === 'string' ? code : undefined }, error.message)
  } else log.error({ err: error.cause ?? error, ...more }, error.message)
}
