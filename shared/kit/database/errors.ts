import { ParleyError } from '@parley/wire/errors'

/** A database cannot be opened. `message` is a sentence for the operator: which database, why, and what to do. */
export class DatabaseRefused extends Error {
  override readonly name = 'DatabaseRefused'
}

/** The error for callers when the storage fails. The driver's error is only in the cause. */
export function unavailable(message: string, cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', { message, headers: { 'retry-after': '5' }, cause })
}
