import type { OutgoingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { aboutTheAnswer } from '@parley/kit/http/security-headers'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Target } from './agent-target.ts'
import type { CompletedRequest } from './completed-request.ts'
import { Exchange, type ResponseHead, type ResponseObserver } from './exchange.ts'
import { type Forwarding, requestHeaders, responseHeaders } from './forward-headers.ts'
import { ResponseIdRewriter } from './response-id.ts'
import { requireForwarding } from './token-forwarding.ts'
import { upstreamError } from './upstream-error.ts'

/** What the gateway saw of an agent: it answered, or it failed for a reason of its own. */
export type AgentSignal = 'answered' | 'failed'
export type ReportSignal = (agentId: string, sign: AgentSignal) => void

/** The client closed its connection before it had the whole answer. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientLeft'
}

/** Sends the bytes to the agent, with the caller's headers and ours. */
export function exchangeWith(
  target: Target,
  request: FastifyRequest,
  { body, answerId }: CompletedRequest,
  more?: Record<string, string>,
): Exchange {
  const exchange = new Exchange(answerId && new ResponseIdRewriter(answerId.sent, answerId.callers))
  const headers = { ...headersFor(request, { to: target.entry, hasBody: true }), ...more }
  // In a compressed answer the id cannot be found.
  if (answerId !== undefined) headers['accept-encoding'] = 'identity'
  // Undici says its own; to delete it would make every look at the others slow.
  headers['host'] = undefined
  headers['content-length'] = String(body.byteLength)
  target.upstream.dispatch(
    { origin: target.origin, path: target.path, method: 'POST', headers, body },
    exchange,
  )
  return exchange
}

export interface RelayOptions {
  reportSignal?: ReportSignal | undefined
  /** Of ours, beside those of the agent. */
  headers?: Record<string, string>
  /** Makes whoever looks on as the answer passes; undefined: nobody. */
  watch?: ((head: ResponseHead) => ResponseObserver | undefined) | undefined
}

/** A POST whose bytes are here, and its answer as it comes. @throws ParleyError Unavailable before a byte was answered */
export async function relay(
  request: FastifyRequest,
  reply: FastifyReply,
  target: Target,
  sent: CompletedRequest,
  { reportSignal, headers, watch }: RelayOptions = {},
): Promise<FastifyReply> {
  const exchange = exchangeWith(target, request, sent)
  abortOnDisconnect(reply, exchange)
  let head: ResponseHead
  try {
    head = await exchange.head
  } catch (error) {
    if (reply.raw.destroyed) return reply.hijack()
    reportSignal?.(target.entry.id, 'failed')
    throw upstreamError(target.entry.slug, error as Error)
  }
  reportSignal?.(target.entry.id, signalOf(head))
  begin(reply, head, target.entry, headers)
  exchange.pipe(reply.raw, watch?.(head))
  return reply
}

/** An agent that says that it is busy or stops is not one that fails. */
export function signalOf({ status }: ResponseHead): AgentSignal {
  return status >= 500 && status !== 503 ? 'failed' : 'answered'
}

/** Writes the head of the agent's answer; from here on the answer is on its way. */
export function begin(
  reply: FastifyReply,
  { status, headers }: ResponseHead,
  entry: AgentEntry,
  more?: Record<string, string>,
): void {
  const answered = { ...ofTheRequest(reply), ...responseHeaders(headers, entry), ...more }
  // What is counted of the answer.
  if (headers['content-length'] !== undefined) void reply.header('content-length', headers['content-length'])
  reply.hijack()
  reply.raw.writeHead(status, answered as Record<string, string>)
}

/** Ours, but for what speaks of the answer itself: the answer is the agent's. An error of ours has them. */
function ofTheRequest(reply: FastifyReply): OutgoingHttpHeaders {
  const ours = reply.getHeaders()
  const kept: OutgoingHttpHeaders = {}
  for (const name in ours) if (!aboutTheAnswer.includes(name)) kept[name] = ours[name]
  return kept
}

/** Returns what takes the watch back: for answers that are here. */
export function abortOnDisconnect(reply: FastifyReply, exchange: Exchange): () => void {
  const left = () => {
    if (!reply.raw.writableFinished) exchange.abort(new ClientDisconnected('the client has left'))
  }
  reply.raw.once('close', left)
  if (reply.raw.destroyed) left()
  return () => void reply.raw.off('close', left)
}

/**
 * The caller's headers as they go on to an agent; those that say where a request came from are ours.
 * @throws ParleyError InsufficientPermissions when the agent needs a token and may not receive that of the request
 */
export function headersFor(
  request: FastifyRequest,
  way: Pick<Forwarding, 'hasBody'> & { to: AgentEntry },
  headers: FastifyRequest['headers'] = request.headers,
) {
  return requestHeaders(headers, {
    ...way,
    forwardsToken: headers.authorization !== undefined && requireForwarding(way.to, request.token),
    addresses: addressesOf(request),
    host: request.host === '' ? undefined : request.host,
    protocol: request.protocol,
    requestId: request.id,
    prefix: request.url.startsWith('/agents/') ? `/agents/${way.to.slug}` : '/',
  })
}

/**
 * Fastify lists them from our own peer outwards, up to the first that is not a trusted proxy: there the claims end, and
 * without a trusted peer they are not even read. What is no address is left out.
 */
function addressesOf(request: FastifyRequest): string {
  const addresses = request.ips ?? [request.ip]
  return addresses
    .filter((address) => isIP(address) !== 0)
    .reverse()
    .join(', ')
}
