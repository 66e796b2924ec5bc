import type { IncomingHttpHeaders } from 'node:http'
import { capturePageHeaders } from '@parley/engine/payments/capture/capture-page'
import { contentPolicy } from '@parley/kit/http/security-headers'
import type { TraceContext } from '@parley/kit/telemetry/trace-context'
import { dialectHeaders } from '@parley/wire/codecs/dialects'
import type { AgentEntry } from '../../registry/entry.ts'
import { referencesHeader } from './reference-grants.ts'

/**
 * Request headers that are forwarded to an agent. The gateway itself sets the forwarding headers, the request id and
 * the host. Cookies are not listed, because they belong to the gateway's origin, and neither are proofs of possession
 * (`dpop`), which the gateway checks. Hop-by-hop headers (RFC 9110, section 7.6.1) are on neither list.
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
  // Web pages of agents, and CORS.
  'access-control-request-headers',
  'access-control-request-method',
  'origin',
  'referer',
  'sec-fetch-dest',
  'sec-fetch-mode',
  'sec-fetch-site',
  'sec-fetch-user',
  // Parley and payments.
  'idempotency-key',
  'payment-signature',
  'x-did',
  'x-did-audience',
  'x-did-signature',
  'x-did-timestamp',
  'x-payment',
  'x-payment-session',
  // Dialects.
  ...dialectHeaders.request.map((name) => name.toLowerCase()),
  // MCP.
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  // Tracing.
  'b3',
  'baggage',
  'traceparent',
  'tracestate',
  'x-correlation-id',
])
const ofRequestsToo = /^x-b3-[a-z]+$/

/** Response headers that are forwarded to the caller. */
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
  // Web pages.
  'content-security-policy',
  'cross-origin-embedder-policy',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'permissions-policy',
  'referrer-policy',
  'x-content-type-options',
  'x-frame-options',
  'x-robots-tag',
  // Stops a proxy in front of the gateway from buffering event streams.
  'x-accel-buffering',
  // Parley and payments.
  'idempotency-key',
  'payment-required',
  'payment-response',
  'x-next-cursor',
  'x-payment-response',
  // Dialects.
  ...dialectHeaders.answer.map((name) => name.toLowerCase()),
  // MCP.
  'mcp-protocol-version',
  'mcp-session-id',
  // Tracing.
  'traceparent',
  'traceresponse',
  'tracestate',
  'x-correlation-id',
])
const ofAnswersToo = /^x-ratelimit-[a-z-]+$/
/**
 * Headers that are forwarded only from supervised agents. Cookies and `clear-site-data` affect the gateway's origin, with
 * its sign-in sessions, and are forwarded from no agent.
 */
const ofSupervisedAnswers = new Set(['x-request-id'])
const ofSupervisedAnswersToo = /^access-control-[a-z-]+$/
/** Schemes for which a browser shows a password prompt in the gateway's name. */
const asksForPassword = /\b(basic|digest|negotiate|ntlm)\b/i

export interface Forwarding {
  /** The client and the trusted proxies, in the order of X-Forwarded-For. */
  addresses: string
  host: string | undefined
  protocol: string
  requestId: string
  /** The path under which the caller reaches the agent: `/agents/<slug>`, or `/` for a call that names no agent. */
  prefix: string
  /** False for GET and HEAD, whose `content-length` is dropped. */
  hasBody: boolean
  /** The `Authorization` for this agent. The caller's own is never forwarded. */
  authorization: string | undefined
  /** The grant for the tasks that the message refers to. A caller's own is never forwarded. */
  references?: string | undefined
  /** The position in the trace of the gateway, which replaces that of the caller. */
  trace?: TraceContext | undefined
}

export function requestHeaders(headers: IncomingHttpHeaders, from: Forwarding): IncomingHttpHeaders {
  const named = namedHops(headers.connection)
  const passes = (name: string) => {
    if (name === 'content-length') return from.hasBody
    return ofRequests.has(name) || ofRequestsToo.test(name)
  }
  const forwarded: IncomingHttpHeaders = {}
  // Headers are copied one by one, because `delete` would turn the object into a slow dictionary.
  for (const name in headers) if (passes(name) && !named.includes(name)) forwarded[name] = headers[name]
  if (from.authorization !== undefined) forwarded['authorization'] = from.authorization
  if (from.references !== undefined) forwarded[referencesHeader] = from.references
  forwarded['x-forwarded-for'] = from.addresses
  forwarded['x-forwarded-proto'] = from.protocol
  forwarded['x-forwarded-prefix'] = from.prefix
  if (from.host !== undefined) forwarded['x-forwarded-host'] = from.host
  forwarded['x-request-id'] = from.requestId
  if (from.trace !== undefined) {
    forwarded['traceparent'] = from.trace.traceparent
    forwarded['tracestate'] = from.trace.tracestate
  }
  return forwarded
}

/** The headers of an agent's response that are forwarded to the caller. */
export function responseHeaders(
  headers: IncomingHttpHeaders,
  { origin }: Pick<AgentEntry, 'origin'>,
): IncomingHttpHeaders {
  const named = namedHops(headers.connection)
  const kept: IncomingHttpHeaders = {}
  for (const name in headers) {
    if (answerPasses(name, origin === 'supervised') && !named.includes(name)) kept[name] = headers[name]
  }
  const challenge = kept['www-authenticate']
  if (challenge !== undefined && asksForPassword.test(challenge)) delete kept['www-authenticate']
  return origin === 'supervised' ? withoutScripts(kept) : withPolicy(kept, 'sandbox')
}

function answerPasses(name: string, isOurs: boolean): boolean {
  if (ofAnswers.has(name) || ofAnswersToo.test(name)) return true
  return isOurs && (ofSupervisedAnswers.has(name) || ofSupervisedAnswersToo.test(name))
}

/** The policy of the payment page, which allows its script in the version of this gateway only. */
const pagePolicy = capturePageHeaders['content-security-policy']
const policiesWithoutScripts = new Set<string | string[] | undefined>([contentPolicy, pagePolicy])

/**
 * Pages of supervised agents have the origin of the gateway, and with it the session of a person at the console. They run no
 * script but that of the payment page.
 */
function withoutScripts(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const own = headers['content-security-policy']
  return policiesWithoutScripts.has(own) ? headers : withPolicy(headers, pagePolicy)
}

/** Adds a policy to the agent's own one in these headers. `sandbox` allows no scripts and gives a page of an external agent an opaque origin. */
function withPolicy(headers: IncomingHttpHeaders, policy: string): IncomingHttpHeaders {
  const own = [headers['content-security-policy'] ?? []].flat()
  headers['content-security-policy'] = own.length === 0 ? policy : [...own, policy].join(', ')
  headers['x-content-type-options'] = 'nosniff'
  return headers
}

/** The hop-by-hop headers that `Connection` names. */
function namedHops(connection: string | undefined): string[] {
  if (connection === undefined || connection === 'keep-alive' || connection === 'close') return []
  return connection
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
}
