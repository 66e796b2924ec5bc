import { type IncomingHttpHeaders, validateHeaderName, validateHeaderValue } from 'node:http'
import { type AllowedHosts, noExceptions } from './allowed-hosts.ts'
import { BoundedResponse } from './bounded-response.ts'
import { Deadline } from './deadline.ts'
import { guardedResolver } from './dns-resolver.ts'
import { errorCode } from './error-code.ts'
import { OutgoingFailed, OutgoingRefused } from './outgoing-errors.ts'
import { type OutgoingUrl, outgoingUrl } from './outgoing-url.ts'
import { type PinnedConnection, PinnedConnections } from './pinned-connections.ts'
import { type Resolver, resolvePublic } from './resolve-public.ts'

export interface GuardedFetchOptions {
  method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE'
  /** Headers other than those of the connection (`host`, `content-length`, `connection` …). */
  headers?: Record<string, string>
  body?: string | Buffer
  /** Maximum size of the response body. Default 1 MiB. */
  maxBytes?: number
  /**
   * Whether only the status is needed. The body is then read up to `maxBytes`, discarded, and returned empty. A
   * response with an incomplete body still counts as a response.
   */
  discardBody?: boolean
  /** Time limit for the whole request, from resolving the name to reading the response. Default 5 s. */
  timeoutMs?: number
  /** Exceptions to the guard. Default: none. */
  allowed?: AllowedHosts
  resolver?: Resolver
  signal?: AbortSignal
  /** Connection pool. Default: a single connection that is closed after the response. */
  connections?: PinnedConnections
  /** CA certificates (PEM) that replace the default ones; ignored with `connections`, which have their own. */
  ca?: string
}

export interface GuardedResponse {
  /** The status, which may be any, because redirects are not followed. */
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
  /** The address of the server. */
  address: string
}

const bodyMaxBytes = 1024 * 1024
const totalMs = 5000

/**
 * Sends a request to an untrusted URL. The name is resolved once, every address is checked, and the connection goes
 * to a checked address with the original name for TLS and `Host`. It follows no redirects, uses no proxies and does
 * not decompress; time, headers and body are bounded.
 * @param url a string, or the result of `outgoingUrl` with the same exceptions
 * @throws OutgoingRefused: do not retry; OutgoingFailed: a later attempt may succeed
 */
export async function guardedFetch(
  url: string | OutgoingUrl,
  options: GuardedFetchOptions = {},
): Promise<GuardedResponse> {
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

export function addressesOf(
  target: OutgoingUrl,
  { allowed, resolver = guardedResolver(allowed) }: { allowed: AllowedHosts; resolver?: Resolver },
  deadline: Deadline,
): Promise<string[]> | string[] {
  // `outgoingUrl` has checked the address.
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
): Promise<GuardedResponse> {
  const { deadline } = request
  deadline.throwIfEnded()
  const connection =
    connections.takeIdle(target, addresses) ?? (await connections.lease(target, addresses, deadline.signal))
  let reusable = false
  try {
    const { status, headers, body, complete } = await send(connection, target, request)
    reusable = complete
    return { status, headers, body, address: connection.address }
  } finally {
    connections.release(connection, reusable)
  }
}

async function send(
  { client }: PinnedConnection,
  { path }: OutgoingUrl,
  { method = 'GET', body, headers, deadline, ...bounds }: Request,
) {
  const { maxBytes = bodyMaxBytes, discardBody = false } = bounds
  const response = new BoundedResponse({ maxBytes, discardBody })
  deadline.onEnd((reason) => response.abort(reason))
  try {
    client.dispatch({ method, path, headers, body: body ?? null }, response)
    return await response.received
  } catch (error) {
    throw failureOf(error)
  }
}

const connectionHeaders = new Set([
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

/** @throws OutgoingRefused for line breaks, control characters, and headers of the connection */
export function checkedHeaders(custom: Record<string, string>): Record<string, string> {
  const headers: Record<string, string> = { 'user-agent': 'parley', 'accept-encoding': 'identity' }
  for (const [name, value] of Object.entries(custom)) {
    const key = name.toLowerCase()
    try {
      validateHeaderName(name)
      validateHeaderValue(name, value)
    } catch {
      throw new OutgoingRefused('request', 'A request header contains characters that are not allowed')
    }
    if (connectionHeaders.has(key)) throw new OutgoingRefused('request', `The header ${key} cannot be set`)
    headers[key] = value
  }
  return headers
}

/** Replaces a driver error, whose message may contain addresses. */
export function failureOf(error: unknown): Error {
  if (error instanceof OutgoingFailed || error instanceof OutgoingRefused) return error
  const code = errorCode(error)
  if (code === 'UND_ERR_HEADERS_OVERFLOW')
    return new OutgoingFailed('too_large', 'The response headers are too large', error)
  if (
    (error instanceof Error && error.name === 'HTTPParserError') ||
    code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'
  )
    return new OutgoingFailed('protocol', 'The response is not HTTP', error)
  return new OutgoingFailed('connection', 'The connection was lost before the end of the response', error)
}
