import { actingAgents } from '@parley/kit/auth/caller'
import { defaultDialect, partsOf } from '@parley/wire/codecs/dialects'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Delivered } from '../forwarding/deliver.ts'
import { errorIn, lacksDialect } from '../forwarding/refusal.ts'
import type { Decision, DecisionRequest } from '../negotiation/negotiator.ts'
import { cannotBePaid } from '../placement/payment-affinity.ts'
import type { Sending } from '../placement/sending.ts'

/** The fields of a message that decide which agents must not receive it. */
type RefusedMessage = Pick<Sending, 'message' | 'agents' | 'payment' | 'operation' | 'request'>

/** Why an agent must not receive the message, regardless of its score. */
export function refusalOf(
  sending: RefusedMessage,
  mayHaveTask: readonly string[],
): NonNullable<DecisionRequest['refuse']> {
  const skill = skillIdIn(sending.message.metadata)
  return (id) => {
    const entry = sending.agents.find(id)
    const refusal =
      entry &&
      (cannotStream(sending, entry) ??
        cannotTakeTask(entry, mayHaveTask) ??
        cannotBePaid(entry, sending.payment) ??
        cannotActAgain(sending, entry))
    if (refusal !== undefined || typeof skill !== 'string') return refusal
    const allowed = sending.agents.restrictions?.limited.get(id)
    return allowed?.has(skill) === false
      ? 'its policy does not allow the skill that the message names'
      : undefined
  }
}

function cannotStream({ operation }: RefusedMessage, { card }: AgentEntry): string | undefined {
  if (operation !== 'streamMessage') return undefined
  const { capabilities } = card
  return isObject(capabilities) && capabilities['streaming'] === false ? 'it does not stream' : undefined
}

function cannotTakeTask(entry: AgentEntry, [slug]: readonly string[]): string | undefined {
  return slug === undefined || !isExternal(entry)
    ? undefined
    : `it is external, and agent ${slug} may have the task`
}

/** An agent that calls others for a client would otherwise often receive its own message. */
function cannotActAgain({ request }: RefusedMessage, { did }: AgentEntry): string | undefined {
  const agents = request.token === undefined ? [] : actingAgents(request.token.caller)
  return did !== undefined && agents.includes(did)
    ? 'it already acts for the client in this chain'
    : undefined
}

export function outcomeOf(delivered: Delivered): Decision['tried'][number]['outcome'] {
  if (delivered.kind === 'not taken') return delivered.why
  return delivered.kind === 'unknown' ? 'unknown' : 'answered'
}

/**
 * Parse error (also used by the reference implementation for invalid params), method not found, and invalid params; 400 is
 * the code of all of them without a JSON-RPC envelope.
 */
const formErrors = new Set<unknown>([-32700, -32601, -32602, 400])

/**
 * Whether an external agent rejects the form of a message that is valid for Parley, or the exchanged token, so no task
 * exists. Supervised agents share Parley's schema and introspection, so their rejection has another reason.
 */
export function isNotUnderstood(
  entry: AgentEntry,
  delivered: Delivered,
): delivered is Extract<Delivered, { kind: 'answered' }> {
  if (!isExternal(entry) || delivered.kind !== 'answered') return false
  if (delivered.head.status === 401) return true
  return formErrors.has(errorIn(delivered.bytes)?.code)
}

/** Whether the agent did not read the message, because it lacks the dialect. */
export function isOtherDialect(
  { codec, request, rest }: Sending,
  entry: AgentEntry,
  delivered: Delivered,
): boolean {
  if (codec === defaultDialect || delivered.kind !== 'answered') return false
  return lacksDialect(entry, { path: partsOf(request.url).path, rest }, delivered.head)
}
