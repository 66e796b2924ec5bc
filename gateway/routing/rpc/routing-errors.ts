import { idempotencyKeyOut, noAgentData } from '@parley/wire/codecs/parley/negotiation'
import { ParleyError } from '@parley/wire/errors'
import { incompleteHeader } from '../forwarding/upstream-error.ts'
import type { Choice } from '../negotiation/choices.ts'
import type { Decision, DeliveryAttempt } from '../negotiation/negotiator.ts'

type Headers = Record<string, string>

const candidatesShown = 5

/**
 * The error for a task that no agent can handle; lists the best candidates
 * (spec/gateway-routing.md#calls-without-an-agent).
 */
export function noAgent({ answer }: Decision, headers: Headers): ParleyError {
  const candidates = answer.candidates.slice(0, candidatesShown)
  const data = { reason: 'no_agent', ...noAgentData({ ...answer, candidates }) }
  return new ParleyError('UnsupportedOperation', { message: 'No agent can handle this task', data, headers })
}

/**
 * The error for a message that no agent has accepted, so it may be sent again.
 * @param order the agents that can handle it; absent if the message is bound to the agent that was tried
 */
export function noAgentAvailable(
  tried: readonly DeliveryAttempt[],
  headers: Headers,
  order: readonly Choice[] = [],
): ParleyError {
  const away = order.flatMap(({ ranked: { slug }, away: absence }) =>
    absence === undefined ? [] : [{ agent: slug, ...absence }],
  )
  const seconds = Math.min(60, ...away.map(({ retrySeconds }) => retrySeconds), tried.length > 0 ? 2 : 60)
  const retry = `Send the message again in ${seconds} seconds.`
  const [first] = away
  const message =
    first === undefined || tried.length > 0
      ? `No agent that can handle this task accepts work at the moment. ${retry}`
      : `Agent ${first.agent} can handle this task but is not available at the moment (${first.rule}). ${retry}`
  return new ParleyError('Unavailable', {
    message,
    data: {
      reason: 'agent_down',
      tried: tried.map(({ agent, outcome }) => ({ agent, outcome })),
      ...(away.length > 0 && { away: away.map(({ agent, rule }) => ({ agent, rule })) }),
    },
    headers: { ...headers, 'retry-after': String(seconds) },
  })
}

/** The agent may have accepted the message. Sending it again under the same key does not run it twice. */
export function outcomeUnknown(agent: string, key: string, headers: Headers): ParleyError {
  return new ParleyError('Unavailable', {
    message: `Agent ${agent} may have accepted the message: send it again with the same Idempotency-Key`,
    data: { reason: 'outcome_unknown', agent, ...idempotencyKeyOut(key) },
    headers: { ...headers, 'idempotency-key': key, 'retry-after': '2' },
  })
}

/**
 * The error for a message that continues an unknown task.
 * @param unknown agents that may have the task, but reject queries or do not support them
 */
export function noSuchTask(taskId: string, unknown: readonly string[]): ParleyError {
  const headers = unknown.length === 0 ? {} : { 'x-parley-incomplete': incompleteHeader(unknown) }
  return new ParleyError('TaskNotFound', { data: { taskId }, headers })
}
