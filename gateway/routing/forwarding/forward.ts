import type { OutgoingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { contentHeaders } from '@parley/kit/http/security-headers'
import { currentTrace, inSpan, type SpanAttributes, type SpanOptions } from '@parley/kit/telemetry/tracing'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import type { ForwardedCalls } from '../../records/forwarded-calls.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { AuthorizedTarget } from './agent-tokens.ts'
import type { CompletedRequest } from './completed-request.ts'
import { Exchange, isBodiless, type ResponseHead, type ResponseObserver } from './exchange.ts'
import { type Forwarding, requestHeaders, responseHeaders } from './forward-headers.ts'
import { ResponseIdRewriter } from './response-id.ts'
import { upstreamError } from './upstream-error.ts'

/** Input for outlier detection: the agent responded, or it failed through its own fault. */
export type AgentSignal = 'answered' | 'failed'
export type ReportSignal = (agentId: string, sign: AgentSignal) => void

declare module 'fastify' {
  interface FastifyInstance {
    /** Counts the calls to agents. */
    forwardedCalls?: ForwardedCalls
  }
}

/** The client disconnected before the end of the response. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected'
}

/** The step of a trace in which an agent receives a request. */
export const forwardSpan = (
  { slug }: Pick<AgentEntry, 'slug'>,
  attributes: SpanAttributes = {},
): SpanOptions => ({
  kind: 'client',
  attributes: { 'gen_ai.agent.name': slug, ...attributes },
})

/** Sends the request to the agent with the forwarded headers. */
export function exchangeWith(
  target: AuthorizedTarget,
  request: FastifyRequest,
  { body, answerId }: CompletedRequest,
  more?: Record<string, string>,
): Exchange {
  // A call without a JSON-RPC envelope may have any method, and only some of them have a body.
  const { method } = request
  const rewriter = answerId && new ResponseIdRewriter(answerId.sent, answerId.callers)
  // Reads of cards and documents are no calls.
  const isCall = method === 'POST'
  const counted = isCall
    ? request.server.forwardedCalls?.begin(target.entry, request.token?.caller)
    : undefined
  const exchange = new Exchange(rewriter, counted)
  const hasBody = method === 'POST' || body.byteLength > 0
  const headers = headersFor(request, target, { hasBody })
  if (more !== undefined) Object.assign(headers, more)
  // The id cannot be restored in a compressed response.
  if (answerId !== undefined) headers['accept-encoding'] = 'identity'
  if (hasBody) headers['content-length'] = String(body.byteLength)
  target.upstream.dispatch(
    {
      origin: target.origin,
      path: target.path,
      method: method as Dispatcher.HttpMethod,
      headers,
      body: hasBody ? body : null,
    },
    exchange,
  )
  return exchange
}

export interface ForwardOptions {
  reportSignal?: ReportSignal | undefined
  /** Headers that the gateway adds to the response. */
  headers?: Record<string, string>
  /** Creates an observer for the response, or returns undefined if there is none. */
  watch?: ((head: ResponseHead) => ResponseObserver | undefined) | undefined
  /** Throws the error that replaces the response. */
  check?: ((head: ResponseHead) => void) | undefined
  /**
   * Returns the body that replaces that of the response, which must have at most 1 MiB. The caller receives nothing
   * before.
   */
  rewrite?: ((head: ResponseHead, bytes: Buffer) => Buffer | Promise<Buffer>) | undefined
}

const rewrittenMaxBytes = 1024 * 1024

/** Forwards a buffered POST and streams the response. @throws ParleyError Unavailable before the first response byte */
export async function forward(
  request: FastifyRequest,
  reply: FastifyReply,
  target: AuthorizedTarget,
  sent: CompletedRequest,
  { reportSignal, headers, watch, check, rewrite }: ForwardOptions = {},
): Promise<FastifyReply> {
  // A body that is read must not be compressed.
  const plain = rewrite === undefined && watch === undefined ? undefined : { 'accept-encoding': 'identity' }
  let answered: { exchange: Exchange; head: ResponseHead }
  try {
    answered = await inSpan('forward', forwardSpan(target.entry), async (span) => {
      const exchange = exchangeWith(target, request, sent, plain)
      abortOnDisconnect(reply, exchange)
      const head = await exchange.head
      span.set({ 'http.response.status_code': head.status })
      return { exchange, head }
    })
  } catch (error) {
    if (reply.raw.destroyed) return reply.hijack()
    reportSignal?.(target.entry.id, 'failed')
    throw upstreamError(target.entry.slug, error)
  }
  const { exchange, head } = answered
  reportSignal?.(target.entry.id, signalOf(head.status))
  try {
    check?.(head)
  } catch (error) {
    exchange.abort(error)
    throw error
  }
  if (rewrite !== undefined && !isBodiless(head.status)) {
    const collected = await exchange
      .collect(rewrittenMaxBytes, () => {})
      .catch((error: unknown) => {
        throw upstreamError(target.entry.slug, error)
      })
    const bytes = await rewrite(head, collected)
    const length = { 'content-length': String(bytes.byteLength) }
    begin(reply, { ...head, headers: { ...head.headers, ...length } }, target.entry, headers)
    reply.raw.end(bytes)
    return reply
  }
  begin(reply, head, target.entry, headers)
  exchange.pipe(reply.raw, watch?.(head))
  return reply
}

/** 503 does not count as a failure, because the agent is busy or stopping. */
export function signalOf(status: number): AgentSignal {
  return status >= 500 && status !== 503 ? 'failed' : 'answered'
}

/** Writes the status and headers of the agent's response. */
export function begin(
  reply: FastifyReply,
  { status, headers }: ResponseHead,
  entry: AgentEntry,
  more?: Record<string, string>,
): void {
  const ours = reply.getHeaders()
  const answered: OutgoingHttpHeaders = {}
  // The agent sets the headers that describe the response itself.
  for (const name in ours) if (!contentHeaders.includes(name)) answered[name] = ours[name]
  Object.assign(answered, responseHeaders(headers, entry), more)
  // The gateway answers the caller, and the span of the agent is a child of its span.
  if (ours['traceresponse'] !== undefined) answered['traceresponse'] = ours['traceresponse']
  // Needed for the response size metrics.
  if (headers['content-length'] !== undefined) void reply.header('content-length', headers['content-length'])
  if (headers['content-type']?.startsWith('text/event-stream') === true)
    reply.server.openStreams?.add(reply, entry)
  reply.hijack()
  reply.raw.writeHead(status, answered)
}

/** Aborts the exchange when the client disconnects. Returns a function that removes the listener. */
export function abortOnDisconnect(reply: FastifyReply, exchange: Exchange): () => void {
  const left = () => {
    if (!reply.raw.writableEnded) exchange.abort(new ClientDisconnected('the client has disconnected'))
  }
  reply.raw.once('close', left)
  if (reply.raw.destroyed) left()
  return () => void reply.raw.off('close', left)
}

/** The headers for the agent: the caller's forwarded headers and those that the gateway sets. */
export function headersFor(
  request: FastifyRequest,
  target: Pick<AuthorizedTarget, 'entry' | 'authorization' | 'references' | 'isNamed'>,
  { hasBody }: Pick<Forwarding, 'hasBody'>,
  headers: FastifyRequest['headers'] = request.headers,
) {
  const { entry, authorization, references, isNamed } = target
  return requestHeaders(headers, {
    hasBody,
    authorization,
    references,
    addresses: addressesOf(request),
    host: request.host === '' ? undefined : request.host,
    protocol: request.protocol,
    requestId: request.id,
    prefix: isNamed === true ? `/agents/${entry.slug}` : '/',
    trace: currentTrace(),
  })
}

/**
 * Fastify lists the addresses from the direct peer outwards up to the first untrusted one. Values that are not
 * IP addresses are dropped.
 */
function addressesOf(request: FastifyRequest): string {
  const { ips, ip } = request
  if (ips === undefined) return isIP(ip) === 0 ? '' : ip
  return ips
    .filter((address) => isIP(address) !== 0)
    .reverse()
    .join(', ')
}
