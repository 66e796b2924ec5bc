import { ParleyError } from '@parley/wire/errors'
import { errorCode } from '../net/error-code.ts'

const networkCodes = /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|E(HOST|NET)UNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)$/
/** Error names used by the MongoDB driver and BullMQ, and messages of ioredis errors without a name or code. */
const driverErrors =
  /^(Mongo(Network|NetworkTimeout|ServerSelection|TopologyClosed|ClientClosed|PoolClosed\w*|PoolCleared\w*|WaitQueueTimeout|OperationTimeout)|MaxRetriesPerRequest)Error$/
const redisMessages =
  /^(Connection is closed\.|Stream isn't writeable|Command timed out|Socket timeout\.|connect ETIMEDOUT)/
const reasonMaxChars = 300

/**
 * Returns a one-line reason if an error was caused by an unavailable dependency: the storage, Redis or another
 * server. Returns undefined for all other errors. A SuppressedError counts only if both of its errors are outages.
 */
export function outageOf(error: unknown): string | undefined {
  if (error instanceof SuppressedError) {
    const [first, second] = [outageOf(error.suppressed), outageOf(error.error)]
    return first === undefined || second === undefined ? undefined : lineOf([first, second])
  }
  if (!(error instanceof Error) || !isOutage(error)) return undefined
  return lineOf(messages(error))
}

function isOutage(error: Error): boolean {
  if (error instanceof ParleyError) return error.error === 'Unavailable'
  const code = String(errorCode(error))
  return networkCodes.test(code) || driverErrors.test(error.name) || redisMessages.test(error.message)
}

/** Returns the messages of the error and of its innermost cause. */
function messages(error: Error): string[] {
  let inner = error
  while (inner.cause instanceof Error) inner = inner.cause
  return [textOf(error), textOf(inner)]
}

/** If several addresses were tried, the AggregateError has no message, but each of its errors has one. */
function textOf(error: Error): string {
  if (error.message !== '') return error.message
  const errors: unknown[] = error instanceof AggregateError ? error.errors : []
  if (errors.length > 0)
    return errors.map((one) => (one instanceof Error ? one.message : String(one))).join(', ')
  const code = errorCode(error)
  return typeof code === 'string' ? code : error.name
}

function lineOf(texts: readonly string[]): string {
  return [...new Set(texts)].join(': ').replaceAll(/\s+/g, ' ').slice(0, reasonMaxChars)
}
