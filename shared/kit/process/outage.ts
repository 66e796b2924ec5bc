import { ParleyError } from '@parley/wire/errors'

const ofNetwork = /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|E(HOST|NET)UNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)$/
/** As the driver of MongoDB and BullMQ name their errors, and as ioredis words what has neither name nor code. */
const ofDriver =
  /^(Mongo(Network|NetworkTimeout|ServerSelection|TopologyClosed|ClientClosed|PoolClosed\w*|PoolCleared\w*|WaitQueueTimeout|OperationTimeout)|MaxRetriesPerRequest)Error$/
const ofRedis =
  /^(Connection is closed\.|Stream isn't writeable|Command timed out|Socket timeout\.|connect ETIMEDOUT)/
const reasonMaxChars = 300

/**
 * Where something failed because what this process needs (its storage, Redis, another server) is away for a while: why, in
 * one line. Undefined for all else, faults of our own among them. Of several that failed in one stop, all must be such.
 */
export function outageOf(error: unknown): string | undefined {
  if (error instanceof SuppressedError) {
    const reasons = [outageOf(error.suppressed), outageOf(error.error)]
    return reasons.includes(undefined) ? undefined : lineOf(reasons as string[])
  }
  if (!(error instanceof Error) || !isOutage(error)) return undefined
  return lineOf(chain(error))
}

function isOutage(error: Error): boolean {
  if (error instanceof ParleyError) return error.error === 'Unavailable'
  const code = String((error as NodeJS.ErrnoException).code)
  return ofNetwork.test(code) || ofDriver.test(error.name) || ofRedis.test(error.message)
}

/** What is said, and what the innermost cause says. */
function chain(error: Error): string[] {
  let inner: unknown = error
  while (inner instanceof Error && inner.cause instanceof Error) inner = inner.cause
  return [textOf(error), textOf(inner as Error)]
}

/** Of addresses that were tried one after the other, each says why; the whole says nothing. */
function textOf(error: Error): string {
  if (error.message !== '') return error.message
  const each = error instanceof AggregateError ? (error.errors as Error[]).map(({ message }) => message) : []
  return each.length > 0 ? each.join(', ') : ((error as NodeJS.ErrnoException).code ?? error.name)
}

function lineOf(texts: readonly string[]): string {
  return [...new Set(texts)].join(': ').replaceAll(/\s+/g, ' ').slice(0, reasonMaxChars)
}
