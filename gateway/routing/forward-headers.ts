import type { IncomingHttpHeaders } from 'node:http'
import type { AgentEntry } from '../registry/entry.ts'

/** RFC 9110, section 7.6.1: between two neighbours only, as are those that `Connection` names. */
const hopByHop = new Set([
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Where a request came from is for us to say: nothing of this is passed on as it came. */
const claimed =
  /^(x-forwarded(-.*)?|forwarded|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip|x-original-.*)$/

/**
 * What speaks for a whole address and not for one answer: to browsers (cookies, stored data, other origins, where to
 * report), to a proxy before us (which file to send), and of what the gateway itself decided.
 */
const ofTheAddress = new Set([
  'accept-ch',
  'alt-svc',
  'clear-site-data',
  'nel',
  'public-key-pins',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'set-cookie',
  'strict-transport-security',
  'x-agent',
  'x-lighttpd-send-file',
  'x-negotiation-id',
  'x-request-id',
  'x-sendfile',
])
const ofTheAddressToo = /^(access-control-|x-accel-(?!buffering$))/
/** A browser would ask its user for a password, in the gateway's name. */
const asksForPassword = /\b(basic|digest|negotiate|ntlm)\b/i

export interface Forwarding {
  to: Pick<AgentEntry, 'slug' | 'origin'>
  /** The client and the proxies that are believed, as X-Forwarded-For lists them. */
  addresses: string
  host: string | undefined
  protocol: string
  requestId: string
  /** False where no body follows (GET, HEAD): a length would announce one. */
  hasBody: boolean
}

export function requestHeaders(headers: IncomingHttpHeaders, from: Forwarding): IncomingHttpHeaders {
  const named = namedHops(headers.connection)
  const isOurs = from.to.origin === 'supervised'
  const forwarded: IncomingHttpHeaders = {}
  // Copied one by one: a header deleted afterwards would make every later look at the others slow.
  for (const name in headers) {
    if (hopByHop.has(name) || named.includes(name) || claimed.test(name)) continue
    // What a browser keeps for our address is not a stranger's to see.
    if (name === 'cookie' && !isOurs) continue
    if (name === 'content-length' && !from.hasBody) continue
    forwarded[name] = headers[name]
  }
  forwarded['x-forwarded-for'] = from.addresses
  forwarded['x-forwarded-proto'] = from.protocol
  forwarded['x-forwarded-prefix'] = `/agents/${from.to.slug}`
  if (from.host !== undefined) forwarded['x-forwarded-host'] = from.host
  forwarded['x-request-id'] = from.requestId
  return forwarded
}

export function responseHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return withoutHops(headers)
}

/**
 * A page that a stranger's agent serves under our address is shown, and is in no origin: none of its scripts run, and
 * nothing of it speaks as a page of the gateway's. What the agent asks for itself holds too, but what it says of the whole
 * address is dropped. Pages of the agents that the gateway runs are ours, with a policy of their own.
 */
export function confined(
  headers: IncomingHttpHeaders,
  { origin }: Pick<AgentEntry, 'origin'>,
): IncomingHttpHeaders {
  if (origin === 'supervised') return headers
  const own = [headers['content-security-policy'] ?? []].flat()
  return {
    ...withoutAddress(headers),
    'content-security-policy': [...own, 'sandbox'].join(', '),
    'x-content-type-options': 'nosniff',
  }
}

function withoutAddress(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept: IncomingHttpHeaders = {}
  for (const name in headers) {
    if (!ofTheAddress.has(name) && !ofTheAddressToo.test(name)) kept[name] = headers[name]
  }
  if (asksForPassword.test(kept['www-authenticate'] ?? '')) delete kept['www-authenticate']
  return kept
}

function withoutHops(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = namedHops(headers.connection)
  const kept: IncomingHttpHeaders = {}
  for (const name in headers) {
    if (!hopByHop.has(name) && !named.includes(name)) kept[name] = headers[name]
  }
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
