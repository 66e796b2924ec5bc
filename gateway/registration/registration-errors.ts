import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { ParleyError } from '@parley/wire/errors'

/** Why an agent cannot be registered, for whoever gave its address; `reason` is the machine's word for it. */
export function refused(reason: string, message: string, cause?: unknown): ParleyError {
  const issues = [{ path: 'url', message }]
  return new ParleyError('InvalidParams', {
    message: 'The agent cannot be registered',
    data: { reason, issues },
    cause,
  })
}

/** The guard's refusals and the failures of the way in the same words; anything else as it is. */
export function asRefused(error: unknown, what: string): unknown {
  if (error instanceof OutgoingRefused) return refused(error.reason, error.message, error)
  if (error instanceof OutgoingFailed)
    return refused(error.reason, `${what} could not be read: ${error.message}`, error)
  return error
}
