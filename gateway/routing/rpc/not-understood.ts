import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Delivered } from '../forwarding/deliver.ts'
import { refusalMaxBytes } from '../forwarding/refusal.ts'

/** Parse error (which the reference implementation also uses for invalid params), method not found, invalid params. */
const codes = new Set<unknown>([-32700, -32601, -32602])

/**
 * Whether an external agent rejects the form of a message that is valid for Parley; it then has no task. Supervised agents
 * share Parley's schema, so their rejection has another reason.
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
