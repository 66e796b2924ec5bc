import { type IncomingHttpHeaders, validateHeaderName, validateHeaderValue } from 'node:http'
import { type AllowedHosts, noExceptions } from './allowed-hosts.ts'
import { BoundedResponse } from './bounded-response.ts'
import { Deadline } from './deadline.ts'
import { guardedResolver } from './dns-resolver.ts'
import { OutgoingFailed, OutgoingRefused } from './outgoing-errors.ts'
import { type OutgoingUrl, outgoingUrl } from './outgoing-url.ts'
import { type PinnedConnection, PinnedConnections } from './pinned-connections.ts'
import { type Resolver, resolvePublic } from './resolve-public.ts'

export interface GuardedFetchOptions {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
  /** Not those of the connection itself (`host`, `content-length`, `connection` …). */
  headers?: Record<string, string>
  body?: string | Buffer
  /** Largest body of the answer. Default 1 MiB. */
  maxBytes?: number
  /**
   * The status is all that is wanted: the body is read up to `maxBytes`, then cut, and given back empty. An answer whose
   * body is not whole when time is up, or is lost on the way, is an answer all the same.
   */
  discardBody?: boolean
  /** For all of it: resolve, connect, send, read. Default 5 s. */
  timeoutMs?: number
  /** Exceptions to the guard. Default none. */
  allowed?: AllowedHosts
  resolver?: Resolver
  signal?: AbortSignal
  /** Keeps connections for later requests. Default: a connection of its own, closed after the answer. */
  connections?: PinnedConnections
  /** Certificates (PEM) that are trusted instead of the well-known ones; with `connections`, theirs count. */
  ca?: string
}

export interface GuardedAnswer {
  /** Any status: redirects are answers like others, and are not followed. */
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  /** The address that answered. */
  address: string
}

const bodyMaxBytes = 1024 * 1024
const totalMs = 5000

/**
 * The one way out for every URL that a stranger gave: the name is resolved once, every answer is checked, and the
 * connection goes to a checked address with the original name for TLS and `Host`. No redirects, no proxies, nothing is
 * unpacked; time, headers and body are bounded.
 * @param url one that `outgoingUrl` has read with the same exceptions is not read again
 * @throws OutgoingRefused never to be tried again, OutgoingFailed a later attempt may succeed
 */
export async function guardedFetch(
  url: string | OutgoingUrl,
  options: GuardedFetchOptions = {},
): Promise<GuardedAnswer> {
  const allowed = options.allowed ?? noExceptions
  const target = typeof url === 'string' ? outgoingUrl(url, allowed) : url
  const headers = checkedHeaders(options.headers ?? {})
  using deadline = new Deadline(options.timeoutMs ?? totalMs, options.signal)
  const addresses = await addressesOf(target, { ...options, allowed }, deadline)
  const request = { ...options, headers, deadline }
  if (options.connections !== undefined)
    return await exchange(options.connections, target, addresses, request)
  await using own = new PinnedConnections({ perHostMax: 1, totalMax: 1, idleMs: 0, ca: options.ca })
  return await exchange(own, target, addresses, request)
}

function addressesOf(
  target: OutgoingUrl,
  { allowed, resolver = guardedResolver(allowed) }: { allowed: AllowedHosts; resolver?: Resolver },
  deadline: Deadline,
): Promise<string[]> | string[] {
  // The URL's own text was judged.
  if (target.isAddress) return [target.host]
  return resolvePublic(target, { allowed, resolver, signal: deadline.signal })
}

type Request = Omit<GuardedFetchOptions, 'headers' | 'signal'> & {
  headers: Record<string, string>
  deadline: Deadline
}

async function exchange(
  connections: PinnedConnections,
  target: OutgoingUrl,
  addresses: readonly string[],
  request: Request,
): Promise<GuardedAnswer> {
  const { deadline } = request
  deadline.throwIfOver()
  const connection =
    connections.kept(target, addresses) ?? (await connections.lease(target, addresses, deadline.signal))
  let reusable = false
  try {
    const { status, headers, body, complete } = await ask(connection, target, request)
    reusable = complete
    return { status, headers, body, address: connection.address }
  } finally {
    connections.release(connection, reusable)
  }
}

async function ask(
  { client }: PinnedConnection,
  { path }: OutgoingUrl,
  { method = 'GET', body, headers, deadline, ...bounds }: Request,
) {
  const { maxBytes = bodyMaxBytes, discardBody = false } = bounds
  const response = new BoundedResponse({ maxBytes, discardBody })
  deadline.whenOver((reason) => response.abort(reason))
  try {
    client.dispatch({ method, path, headers, body: body ?? null }, response)
    return await response.received
  } catch (error) {
    throw failureOf(error)
  }
}

const ofTheConnection = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** @throws OutgoingRefused for line breaks, control characters, and headers that are not the caller's to set */
function checkedHeaders(given: Record<string, string>): Record<string, string> {
  const headers: Record<string, string> = { 'user-agent': 'parley', 'accept-encoding': 'identity' }
  for (const [name, value] of Object.entries(given)) {
    const key = name.toLowerCase()
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      throw new OutgoingRefused('request', 'A header of the request holds characters that are not allowed')
    }
    if (ofTheConnection.has(key)) throw new OutgoingRefused('request', `The header ${key} cannot be set`)
    headers[key] = value
  }
  return headers
}

/** What the driver says about an exchange, in our words; its text may hold addresses. */
function failureOf(error: unknown): Error {
  if (error instanceof OutgoingFailed || error instanceof OutgoingRefused) return error
  const { code, name } = error as NodeJS.ErrnoException
  if (code === 'UND_ERR_HEADERS_OVERFLOW')
    return new OutgoingFailed('too_large', 'The headers of the answer are too large', error)
  if (name === 'HTTPParserError' || code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH')
    return new OutgoingFailed('protocol', 'The answer is not HTTP', error)
  return new OutgoingFailed('connection', 'The connection was lost before the answer ended', error)
}
