import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'

/** Reasons for a 503 that Parley's servers send before they store the message. */
const unprocessed = new Set<unknown>(['draining', 'queue_full', 'oauth', 'limits', 'loop'])
/** A larger response is never a rejection. */
export const refusalMaxBytes = 64 * 1024

/** Whether this is -32042 with a reason that proves nothing was stored. Any other 503 may have been sent later. */
export function isRejectedUnprocessed(status: number, bytes: Buffer): boolean {
  return unprocessed.has(reasonIn(status, bytes))
}

/** Whether the process rejects new work because it is about to stop. */
export function isStopping(status: number, bytes: Buffer): boolean {
  return reasonIn(status, bytes) === 'draining'
}

function reasonIn(status: number, bytes: Buffer): unknown {
  if (status !== 503 || bytes.byteLength > refusalMaxBytes) return undefined
  const envelope = jsonOf(bytes.toString('utf8'))
  const error = isObject(envelope) ? envelope['error'] : undefined
  if (!isObject(error) || error['code'] !== -32042) return undefined
  return isObject(error['data']) ? error['data']['reason'] : undefined
}
