import type { IncomingHttpHeaders } from 'node:http'

/** RFC 9110, section 7.6.1: between two neighbours only. Those that `Connection` names are dropped before. */
const hopByHop = [
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
]

/** Where a request came from is for us to say: nothing of this is passed on as it came. */
const claimed = /^(x-forwarded-.*|forwarded|x-real-ip|x-original-.*)$/

export interface Forwarding {
  slug: string
  /** The client and the proxies that are believed, as X-Forwarded-For lists them. */
  addresses: string
  host: string | undefined
  protocol: string
  requestId: string
  /** False where no body follows (GET, HEAD): a length would announce one. */
  hasBody: boolean
}

export function requestHeaders(headers: IncomingHttpHeaders, from: Forwarding): IncomingHttpHeaders {
  const forwarded: IncomingHttpHeaders = {}
  for (const [name, value] of Object.entries(headers)) {
    if (!hopByHop.includes(name) && !claimed.test(name)) forwarded[name] = value
  }
  if (!from.hasBody) delete forwarded['content-length']
  forwarded['x-forwarded-for'] = from.addresses
  forwarded['x-forwarded-proto'] = from.protocol
  forwarded['x-forwarded-prefix'] = `/agents/${from.slug}`
  if (from.host !== undefined) forwarded['x-forwarded-host'] = from.host
  forwarded['x-request-id'] = from.requestId
  return forwarded
}

export function responseHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = (headers.connection ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
  const kept = Object.entries(headers).filter(([name]) => !hopByHop.includes(name) && !named.includes(name))
  return Object.fromEntries(kept)
}
