import { ParleyError } from '@parley/wire/errors'

/** A database cannot be opened. `message` names the database and says why it failed and what the operator can do. */
export class DatabaseRefused extends Error {
  override readonly name: string = 'DatabaseRefused'
}

/** Another process has the database open. */
export class DatabaseInUse extends DatabaseRefused {
  override readonly name = 'DatabaseInUse'
}

/** Creates the error that callers receive when the storage fails. Only its cause contains the driver's error. */
export function unavailable(message: string, cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', { message, headers: { 'retry-after': '5' }, cause })
}
