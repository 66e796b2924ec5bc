import type { ParleyError } from '@parley/wire/errors'
import type { Log } from './log.ts'

/** What an agent behind the gateway did, or a caller: no fault of this process, and others can cause any number of them. */
const causedByOthers = new Set<unknown>([
  'agent_down',
  'agent_slow',
  'agent_broke_off',
  'outcome_unknown',
  'unread_answers',
])

/**
 * Logs an answer with a status of 500 or more, with what caused it. What others caused is one line without a stack; that a
 * process that stops takes nothing new is no failure.
 */
export function logFailure(log: Log, error: ParleyError, more: Record<string, unknown> = {}): void {
  const { reason, agent } = error.data
  if (reason === 'draining') log.info({ ...more, reason }, error.message)
  else if (causedByOthers.has(reason))
    log.warn({ ...more, reason, agent, code: codeOf(error.cause) }, error.message)
  else log.error({ err: error.cause ?? error, ...more }, error.message)
}

/** Of the system or of the HTTP client, for example `ECONNREFUSED`. */
function codeOf(cause: unknown): string | undefined {
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined
  return typeof code === 'string' ? code : undefined
}
