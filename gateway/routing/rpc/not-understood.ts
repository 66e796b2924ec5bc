import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Delivered } from '../forwarding/deliver.ts'
import { refusalMaxBytes } from '../forwarding/refusal.ts'

/** Parse error (the reference implementation's word for invalid params too), method not found, invalid params. */
const codes = new Set<unknown>([-32700, -32601, -32602])

/**
 * An external agent refuses the form of a message that is valid here: it made no task of it. Agents of this deployment
 * share its schema, so that what they refuse is wrong for another reason.
 */
export function isNotUnderstood(
  entry: AgentEntry,
  delivered: Delivered,
): delivered is Extract<Delivered, { kind: 'answered' }> {
  if (!isExternal(entry) || delivered.kind !== 'answered') return false
  if (delivered.bytes.byteLength > refusalMaxBytes) return false
  const envelope = jsonOf(delivered.bytes.toString('utf8'))
  const error = isObject(envelope) ? envelope['error'] : undefined
  return isObject(error) && codes.has(error['code'])
}
