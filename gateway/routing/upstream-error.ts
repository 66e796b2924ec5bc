import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import { OutgoingFailed, OutgoingRefused } from '../../shared/net/outgoing-errors.ts'

const notReached = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** An agent that is known not to answer, or whose connection failed, as callers see it. */
export function agentIsDown(slug: string, cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: `Agent ${slug} does not answer`,
    data: { reason: 'agent_down', agent: slug },
    headers: { 'retry-after': '2' },
    cause,
  })
}

/** An agent that nobody has admitted, or that an operator has set aside: nothing of the caller's goes there. */
export function agentIsNotTrusted(slug: string, reason: 'not_admitted' | 'quarantined'): ParleyError {
  const why =
    reason === 'quarantined' ? 'has been set aside by an operator' : 'waits for an operator to admit it'
  return new ParleyError('Unavailable', {
    message: `Agent ${slug} ${why}`,
    data: { reason, agent: slug },
    headers: { 'retry-after': '60' },
  })
}

/** What went wrong between gateway and agent; `reason` tells whether the agent can have seen the request. */
export function upstreamError(slug: string, error: Error): ParleyError {
  const cause = error.cause instanceof Error ? error.cause : error
  if (cause instanceof ParleyError) return cause
  const code = (cause as NodeJS.ErrnoException).code ?? ''
  const kept = cause instanceof OutgoingRefused || cause instanceof OutgoingFailed
  if (kept || notReached.has(code)) return agentIsDown(slug, cause)
  const slow = code === 'UND_ERR_HEADERS_TIMEOUT'
  return new ParleyError('Unavailable', {
    message: `Agent ${slug} ${slow ? 'took too long' : 'broke off'}; whether it took the request is not known`,
    data: { reason: slow ? 'agent_slow' : 'agent_broke_off', agent: slug },
    headers: { 'retry-after': '2' },
    cause,
  })
}
