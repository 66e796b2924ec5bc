import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { ParleyError } from '@parley/wire/errors'

/** Returns an error that explains why an agent cannot be registered, with a machine-readable `reason`. */
export function registrationError(reason: string, message: string, cause?: unknown): ParleyError {
  const issues = [{ path: 'url', message }]
  return new ParleyError('InvalidParams', {
    message: 'The agent cannot be registered',
    data: { reason, issues },
    cause,
  })
}

/** Converts errors from guarded requests and returns other errors unchanged. */
export function toRegistrationError(error: unknown, what: string): unknown {
  if (error instanceof OutgoingRefused) {
    const isForOperator = error.reason === 'not_public' || error.reason === 'local_name'
    const how = isForOperator
      ? '. If the agent belongs there, list the host in REGISTRY_ALLOWED_HOSTS of the gateway'
      : ''
    const where = what === 'The URL' ? '' : `${what}: `
    return registrationError(error.reason, `${where}${error.message}${how}`, error)
  }
  if (error instanceof OutgoingFailed)
    return registrationError(error.reason, `${what} could not be read: ${error.message}`, error)
  return error
}
