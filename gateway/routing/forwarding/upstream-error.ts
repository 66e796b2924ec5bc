import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { ParleyError } from '@parley/wire/errors'

const notReached = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** The error for an agent that is known to be down or could not be connected to. */
export function agentIsDown(slug: string, cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: `Agent ${slug} does not answer`,
    data: { reason: 'agent_down', agent: slug },
    headers: { 'retry-after': '2' },
    cause,
  })
}

/** The error for a lookup without a result: one of these unresponsive agents may have the task, context or session. */
export function mayBeAt(slugs: readonly string[], what: 'task' | 'context' | 'payment session'): ParleyError {
  const [slug = '', ...others] = slugs
  const subject =
    others.length === 0
      ? `Agent ${slug} does not answer`
      : `Agent ${slug} and ${others.length} others do not answer`
  return new ParleyError('Unavailable', {
    message: `${subject} and may have this ${what}: try again, or send the request to the agent's own address`,
    data: { reason: 'agent_down', agent: slug },
    headers: { 'retry-after': '2', 'x-parley-incomplete': incompleteHeader(slugs) },
  })
}

const namesMaxLength = 4000

/** The value of `X-Parley-Incomplete`: slugs, and `+N` for those beyond 4,000 characters. */
export function incompleteHeader(slugs: readonly string[]): string {
  const named: string[] = []
  let length = 0
  for (const slug of slugs) {
    length += slug.length + 2
    if (length > namesMaxLength) return [...named, `+${slugs.length - named.length}`].join(', ')
    named.push(slug)
  }
  return named.join(', ')
}

/** The error for a stored route that leads to an agent which is no longer in the registry. */
export function agentHasLeft(
  what: 'message' | 'task' | 'context' | 'payment session' | 'payment',
): ParleyError {
  return new ParleyError('Unavailable', {
    message: `The agent that has this ${what} has left the registry: ask the operator, or send a new message without its ids`,
    data: { reason: 'agent_left' },
    headers: { 'retry-after': '60' },
  })
}

/** The error for an agent that is not admitted or that an operator has quarantined. It receives no callers' data. */
export function agentIsNotTrusted(slug: string, reason: 'not_admitted' | 'quarantined'): ParleyError {
  const why =
    reason === 'quarantined' ? 'has been quarantined by an operator' : 'has not been admitted by an operator'
  return new ParleyError('Unavailable', {
    message: `Agent ${slug} ${why}`,
    data: { reason, agent: slug },
    headers: { 'retry-after': '60' },
  })
}

/** The error for a failed exchange; `reason` says whether the agent may have received the request. */
export function upstreamError(slug: string, thrown: unknown): ParleyError {
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  if (cause instanceof ParleyError) return cause
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  const kept = cause instanceof OutgoingRefused || cause instanceof OutgoingFailed
  if (kept || notReached.has(code)) return agentIsDown(slug, cause)
  const slow = code === 'UND_ERR_HEADERS_TIMEOUT'
  return new ParleyError('Unavailable', {
    message: `Agent ${slug} ${slow ? 'timed out' : 'closed the connection'} and may have received the request`,
    data: { reason: slow ? 'agent_slow' : 'agent_broke_off', agent: slug },
    headers: { 'retry-after': '2' },
    cause,
  })
}
