import type { Delegation } from '@parley/engine/store/store'
import type { MessageTerms } from '@parley/engine/tasks/transitions'
import { actingAgents, type Caller } from '@parley/kit/auth/caller'
import { traceContextIn } from '@parley/kit/telemetry/trace-context'
import { currentTrace } from '@parley/kit/telemetry/tracing'
import { authorizationOf } from './foreign-task.ts'
import type { Call, Services } from './method.ts'

/** The parties, the authority, the deadline and the trace that a message gives to its task (spec/delegation.md#callers). */
export function termsOf(
  { authority }: Pick<Services, 'authority'>,
  { caller, headers }: Call,
  deadlineMs: number | undefined,
): MessageTerms {
  const delegation = delegationOf(caller)
  // An agent that exports no traces passes on those of its callers.
  const trace = currentTrace() ?? traceContextIn(headers)
  return {
    ...(delegation !== undefined && { delegation }),
    ...(authority !== undefined && isKept(caller) && { authority: authority.seal(authorizationOf(headers)) }),
    ...(deadlineMs !== undefined && { deadlineAt: Date.now() + deadlineMs }),
    ...(trace !== undefined && { trace }),
  }
}

/** Only a token that is good for this server alone is stored, and never one of an operator. */
function isKept({ audience = [], scopes }: Caller): boolean {
  return audience.length > 0 && !scopes.has('agent:admin')
}

function delegationOf(caller: Caller): Delegation | undefined {
  const { subject, delegate } = caller
  return delegate === undefined ? undefined : { subject, delegate, agents: actingAgents(caller) }
}
