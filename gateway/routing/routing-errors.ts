import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import type { JsonObject } from '../../shared/protocol/task.ts'
import type { Decision, Try } from './negotiator.ts'

type Headers = Record<string, string>

/** Interfaces, `POST /`: nobody can do it; the best candidates, and why not. */
export function noAgent(decision: Decision, candidates: JsonObject[], headers: Headers): ParleyError {
  return new ParleyError('UnsupportedOperation', {
    message: 'No agent can do this',
    data: {
      reason: 'no_agent',
      negotiation_id: decision.id,
      candidates,
      excluded: decision.answer['excluded'],
      excluded_total: decision.answer['excluded_total'],
    },
    headers,
  })
}

/** Nothing of the message is with anybody: it may be sent again. */
export function nobodyFree(tried: readonly Try[], headers: Headers): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'No agent that could do it takes work now',
    data: { reason: 'agent_down', tried: tried.map(({ agent, outcome }) => ({ agent, outcome })) },
    headers: { ...headers, 'retry-after': '2' },
  })
}

/** The message may be with the agent or not; under its key it can be sent again without being done twice. */
export function outcomeUnknown(agent: string, key: string, headers: Headers): ParleyError {
  return new ParleyError('Unavailable', {
    message: `Whether agent ${agent} took the message is not known: send it again with the same Idempotency-Key`,
    data: { reason: 'outcome_unknown', agent, idempotency_key: key },
    headers: { ...headers, 'idempotency-key': key, 'retry-after': '2' },
  })
}
