import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'

/** Reasons of a 503 that our servers give before anything of the message is kept; other 503s may come after. */
const before = new Set<unknown>(['draining', 'queue_full', 'oauth', 'limits', 'loop'])
/** A longer answer is no refusal. */
export const refusalMaxBytes = 64 * 1024

/** -32042 with a reason that stands for a refusal at the door. A 503 of anybody else's may have come later. */
export function isRejectedUnprocessed(status: number, bytes: Buffer): boolean {
  return before.has(reasonIn(status, bytes))
}

/** It says that it takes nothing new, because it is about to stop. */
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
