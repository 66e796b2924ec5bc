import type { IncomingHttpHeaders } from 'node:http'
import type { AgentEntry } from '../../registry/entry.ts'

/**
 * What of a request goes on to an agent; nothing else does. Where a request came from, its id and its host are the
 * gateway's to say, and hop-by-hop headers (RFC 9110, section 7.6.1) are on neither list.
 */
const ofRequests = new Set([
  // Content, conditions and ranges (RFC 9110), caching, event streams.
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'content-encoding',
  'content-language',
  'content-length',
  'content-type',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-event-id',
  'pragma',
  'prefer',
  'priority',
  'range',
  'user-agent',
  'via',
  // Pages of the agents' own, and what browsers ask for pages elsewhere (CORS).
  'access-control-request-headers',
  'access-control-request-method',
  'origin',
  'referer',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'sec-fetch-user',
  // Parley and its payments; `authorization` has a rule of its own.
  'idempotency-key',
  'payment-signature',
  'x-did',
  'x-did-audience',
  'x-did-signature',
  'x-did-timestamp',
  'x-payment',
  'x-payment-session',
  // A2A and MCP.
  'a2a-extensions',
  'a2a-version',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'x-a2a-extensions',
  // Tracing.
  'b3',
  'baggage',
  'traceparent',
  'tracestate',
  'x-correlation-id',
])
const ofRequestsToo = /^x-b3-[a-z]+$/

/** What of an agent's answer goes on to the caller; nothing else does. */
const ofAnswers = new Set([
  'accept-ranges',
  'age',
  'allow',
  'cache-control',
  'content-disposition',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-range',
  'content-type',
  'date',
  'deprecation',
  'etag',
  'expires',
  'last-modified',
  'link',
  'location',
  'pragma',
  'ratelimit',
  'ratelimit-limit',
  'ratelimit-policy',
  'ratelimit-remaining',
  'ratelimit-reset',
  'retry-after',
  'server-timing',
  'sunset',
  'vary',
  'www-authenticate',
  // Pages.
  'content-security-policy',
  'cross-origin-embedder-policy',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'permissions-policy',
  'referrer-policy',
  'x-content-type-options',
  'x-frame-options',
  'x-robots-tag',
  // To a proxy before us: it must not hold an event stream back.
  'x-accel-buffering',
  // Parley and its payments.
  'idempotency-key',
  'payment-required',
  'payment-response',
  'x-next-cursor',
  'x-payment-response',
  // A2A and MCP.
  'a2a-extensions',
  'a2a-version',
  'mcp-protocol-version',
  'mcp-session-id',
  'x-a2a-extensions',
  // Tracing.
  'traceparent',
  'traceresponse',
  'tracestate',
  'x-correlation-id',
])
const ofAnswersToo = /^x-ratelimit-[a-z-]+$/
/** What speaks for the whole address passes only from agents that the gateway runs. */
const ofSupervisedAnswers = new Set(['clear-site-data', 'set-cookie', 'x-request-id'])
const ofSupervisedAnswersToo = /^access-control-[a-z-]+$/
/** A browser would ask its user for a password, in the gateway's name. */
const asksForPassword = /\b(basic|digest|negotiate|ntlm)\b/i

export interface Forwarding {
  to: Pick<AgentEntry, 'slug' | 'origin'>
  /** The client and the proxies that are believed, as X-Forwarded-For lists them. */
  addresses: string
  host: string | undefined
  protocol: string
  requestId: string
  /** Where the caller sees the agent: `/agents/<slug>`, or `/` for a call that names none. */
  prefix: string
  /** False where no body follows (GET, HEAD): a length would announce one. */
  hasBody: boolean
  /** `mayForwardToken` decided that the agent gets the caller's token. */
  forwardsToken: boolean
}

export function requestHeaders(headers: IncomingHttpHeaders, from: Forwarding): IncomingHttpHeaders {
  const named = namedHops(headers.connection)
  const isOurs = from.to.origin === 'supervised'
  const passes = (name: string) => {
    if (name === 'authorization') return from.forwardsToken
    // What a browser keeps for our address is not an external agent's to see.
    if (name === 'cookie') return isOurs
    if (name === 'content-length') return from.hasBody
    return ofRequests.has(name) || ofRequestsToo.test(name)
  }
  const forwarded: IncomingHttpHeaders = {}
  // Copied one by one: a header deleted afterwards would make every later look at the others slow.
  for (const name in headers) if (passes(name) && !named.includes(name)) forwarded[name] = headers[name]
  forwarded['x-forwarded-for'] = from.addresses
  forwarded['x-forwarded-proto'] = from.protocol
  forwarded['x-forwarded-prefix'] = from.prefix
  if (from.host !== undefined) forwarded['x-forwarded-host'] = from.host
  forwarded['x-request-id'] = from.requestId
  return forwarded
}

/** The agent's own headers of an answer, as they go on to the caller. */
export function responseHeaders(
  headers: IncomingHttpHeaders,
  { origin }: Pick<AgentEntry, 'origin'>,
): IncomingHttpHeaders {
  const named = namedHops(headers.connection)
  const kept: IncomingHttpHeaders = {}
  for (const name in headers) {
    if (answerPasses(name, origin === 'supervised') && !named.includes(name)) kept[name] = headers[name]
  }
  return origin === 'supervised' ? kept : confined(kept)
}

function answerPasses(name: string, isOurs: boolean): boolean {
  if (ofAnswers.has(name) || ofAnswersToo.test(name)) return true
  return isOurs && (ofSupervisedAnswers.has(name) || ofSupervisedAnswersToo.test(name))
}

/**
 * A page that an external agent serves under our address is shown, and is in no origin: none of its scripts run, and
 * nothing of it speaks as a page of the gateway's. What the agent asks for itself holds too. Pages of the agents that the
 * gateway runs are ours, with a policy of their own.
 */
function confined(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const own = [headers['content-security-policy'] ?? []].flat()
  const kept: IncomingHttpHeaders = {
    ...headers,
    'content-security-policy': [...own, 'sandbox'].join(', '),
    'x-content-type-options': 'nosniff',
  }
  if (asksForPassword.test(kept['www-authenticate'] ?? '')) delete kept['www-authenticate']
  return kept
}

/** Almost always there is nothing to read: `keep-alive` is dropped anyway. */
function namedHops(connection: string | undefined): string[] {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return []
  return connection
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
}
