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

/** An agent that is known not to answer, or whose connection failed, as callers see it. */
export function agentIsDown(slug: string, cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: `Agent ${slug} does not answer`,
    data: { reason: 'agent_down', agent: slug },
    headers: { 'retry-after': '2' },
    cause,
  })
}

/** A look-up that cannot be answered while these agents do not: one of them may have what is sought. */
export function mayBeAt(slugs: readonly string[], what: 'task' | 'context' | 'payment session'): ParleyError {
  const [slug = '', ...others] = slugs
  const rest = others.length === 0 ? '' : ` (nor do ${others.length} others)`
  return new ParleyError('Unavailable', {
    message: `Agent ${slug} does not answer${rest} and may have this ${what}: try again, or send the request to the agent's own address`,
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

/** A recorded route leads to an agent that is no longer in the registry. */
export function agentHasLeft(
  what: 'message' | 'task' | 'context' | 'payment session' | 'payment',
): ParleyError {
  return new ParleyError('Unavailable', {
    message: `The agent that has this ${what} has left the registry: ask the operator, or send a new message without its ids`,
    data: { reason: 'agent_left' },
    headers: { 'retry-after': '60' },
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
