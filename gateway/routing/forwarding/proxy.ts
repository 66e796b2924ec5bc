import { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import { requireNoDelegate } from '@parley/kit/auth/authenticate'
import { linger } from '@parley/kit/http/linger'
import { isJson, requireJson } from '@parley/kit/http/request-body'
import type { RestCall } from '@parley/kit/http/rest-call'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { contentHeaders } from '@parley/kit/http/security-headers'
import { partsOf } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { isRecorded } from '../../registry/admission.ts'
import type { AuthorizedTarget } from './agent-tokens.ts'
import { checkLength, limited, readUpTo, tooLarge } from './body-limit.ts'
import { type CallAddress, callAddress } from './call-reader.ts'
import { isBodiless, joined } from './exchange.ts'
import { headersFor } from './forward.ts'
import { responseHeaders } from './forward-headers.ts'
import { forwardPath } from './forward-path.ts'
import {
  forwardNamed,
  type NamedAgentOptions,
  type NamedTarget,
  nameCall,
  namedTarget,
} from './named-agent.ts'
import { isCardMethod, limitedAnswer } from './skill-limit.ts'
import { abortable, type ForwardTarget, forwardTargetKey } from './upstream.ts'
import { upstreamError } from './upstream-error.ts'

export interface ProxyOptions extends NamedAgentOptions {
  /** Default 10 MiB. */
  bodyMaxBytes?: number
}

/** The target of a request for @fastify/http-proxy. */
interface Prepared extends AuthorizedTarget {
  signal: AbortSignal
}

/** Larger bodies are streamed. */
const wholeMaxBytes = 256 * 1024

const prepared = new WeakMap<FastifyRequest, Prepared>()

const anyContent = { '*/*': z.unknown() }
const api: OperationDescription = {
  summary: 'Forward a request to an agent',
  description:
    'The request and the response are those of the agent, which `/agents/{slug}/openapi.json` describes with its address here.',
  tag: 'agents',
  access: 'optional',
  responses: {
    '2XX': { description: 'The answer of the agent', content: anyContent },
    '3XX': { description: 'The answer of the agent', content: anyContent },
    '4XX': { description: 'The answer of the agent, or an error of the gateway', content: anyContent },
    '5XX': { description: 'The agent cannot be reached', content: anyContent },
  },
  errorContent: 'none',
}

/**
 * `ANY /agents/{slug}/…`: forwards to the agent's routes. Bodies and event streams are forwarded unmodified, the
 * agent authorizes the request, and no request is sent twice.
 */
export async function proxyAgents(app: FastifyInstance, options: ProxyOptions): Promise<void> {
  const maxBytes = options.bodyMaxBytes ?? 10 * 1024 * 1024
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, body: Readable, done) => done(null, body))
    scope.addHook('preHandler', (request, reply) => prepare(request, reply, options, maxBytes))
    await scope.register(httpProxy, {
      prefix: '/agents/:slug',
      config: { api },
      upstream: '',
      undici: abortable as never,
      proxyPayloads: false,
      disableRequestLogging: true,
      internalRewriteLocationHeader: false,
      handler: (request, reply, _destination, replyOptions) => {
        // The agent sets these headers for its response; the gateway's error responses set them again.
        for (const name of contentHeaders) reply.removeHeader(name)
        return reply.from(preparedOf(request).path, replyOptions)
      },
      replyOptions: {
        getUpstream: (request) => preparedOf(request as FastifyRequest).origin,
        retryDelay: () => null,
        rewriteRequestHeaders: (request, headers) => outgoing(request as FastifyRequest, headers),

        rewriteHeaders: (headers, request) =>
          responseHeaders(headers, preparedOf(request as FastifyRequest).entry) as typeof headers,
        onResponse: (_request, reply, answer) => pass(reply as FastifyReply, answer as unknown as Answer),
        onError: (reply, { error }) => answerFailure(reply as FastifyReply, error),
      },
    })
  })
}

/** Checks the request and forwards a call; other requests continue to the handler of @fastify/http-proxy. */
async function prepare(
  request: FastifyRequest,
  reply: FastifyReply,
  options: ProxyOptions,
  maxBytes: number,
): Promise<unknown> {
  let named: NamedTarget
  let address: CallAddress | undefined
  let bytes: Buffer | undefined | 'streamed'
  try {
    checkLength(request.headers['content-length'], maxBytes)
    const path = forwardPath(request.url)
    address = callAddress(request.method, path, partsOf(request.url).query)
    if (isOperatorPath(path) || (address === undefined && isCardPath(path)))
      throw new ParleyError('NotFound', { data: { reason: 'route' } })
    if (address?.rest !== undefined) request.rpcMethod = methodOf(address.rest)
    const { slug } = request.params as { slug: string }
    named = await namedTarget(request, slug, path, options)
    const { entry, requireSkill } = named.found
    const limited = requireSkill && limitedAnswer(request, path, entry)
    if (limited !== undefined) return reply.send(limited)
    const keepsRoute = options.routes !== undefined && isRecorded(entry)
    const caller = request.token?.caller
    const isRead = keepsRoute || requireSkill !== undefined || caller?.delegate !== undefined
    const readMaxBytes = isRead ? maxBytes : Math.min(wholeMaxBytes, maxBytes)
    const isBuffered = isWhole(request, address, readMaxBytes)
    if (requireSkill !== undefined && request.method === 'POST' && !isBuffered) throw unreadableRequest()
    if (caller !== undefined && !isBuffered) requireNoDelegate(caller)
    if (isBuffered) bytes = await bytesOf(request.body)
    else bytes = await callBytes(request, address, { maxBytes: readMaxBytes, isRead })
  } catch (error) {
    return refuse(request, address, error)
  }
  if (bytes === undefined) return reply.hijack()
  // Skips the handler of @fastify/http-proxy, which would double the cost.
  if (bytes !== 'streamed') return forwardNamed(request, reply, { ...named, address, body: bytes }, options)
  const { body } = request
  // This must not happen earlier, because a stream without a reader could emit an error without a listener.
  if (body instanceof Readable) request.body = limited(body, maxBytes)
  prepared.set(request, { ...named.target, signal: clientLeft(reply) })
  return undefined
}

const methodOf = ({ codec, route }: RestCall) => codec.methodOf(route.operation)

/** True for most requests, which are small enough to be buffered and sent in one piece. */
function isWhole(
  { method, headers }: FastifyRequest,
  address: CallAddress | undefined,
  maxBytes: number,
): boolean {
  const { 'content-length': length, 'content-type': type, 'transfer-encoding': encoding } = headers
  const isEmpty = length === '0' || (length === undefined && encoding === undefined)
  if (isEmpty && address?.rest !== undefined) return true
  if (method !== 'POST' || type === undefined || length === undefined) return false
  return isJson(type) && Number(length) <= maxBytes
}

/**
 * Reads a call that does not announce its length or is long, because the answer of an agent must be rewritten if it is a card.
 * @returns undefined if the client has disconnected; `streamed` for a longer body and for other requests
 * @throws ParleyError InvalidRequest (413) if the body must be read and is too large
 */
async function callBytes(
  request: FastifyRequest,
  address: CallAddress | undefined,
  { maxBytes, isRead }: { maxBytes: number; isRead: boolean },
): Promise<Buffer | undefined | 'streamed'> {
  const { method, headers, body } = request
  if (address === undefined) return 'streamed'
  // The body of a GET has no meaning and is not forwarded.
  if (method === 'GET') return Buffer.alloc(0)
  if (!(body instanceof Readable)) return 'streamed'
  if (method !== 'POST') return 'streamed'
  const { 'content-type': type } = headers
  if (type !== undefined && !isJson(type)) {
    if (isRead) requireJson(request)
    return 'streamed'
  }
  const read = await readUpTo(body, maxBytes)
  if (read === undefined || read.isWhole) return read?.bytes
  if (isRead || namesCard(read.bytes)) throw tooLarge()
  return 'streamed'
}

/** Whether the method at the beginning of a call is that of the extended card, which needs no long body. */
function namesCard(bytes: Buffer): boolean {
  const named = /^\s*\{[^{[]*?"method"\s*:\s*"([^"\\]*)"/.exec(bytes.toString('utf8', 0, 4096))?.[1]
  return named !== undefined && isCardMethod(named)
}

/**
 * Whether an agent may serve a card at the path. The gateway serves the cards at the paths of every dialect, so this is a path
 * of none, and the agent's card would name its own address.
 */
function isCardPath(path: string): boolean {
  return /\/(\.well-known\/agent(-card)?\.json|v1\/card|(extendedAgent|authenticatedExtended)Card)\/*$/i.test(
    decodeURIComponent(path),
  )
}

/** Whether the path is of the operator API of an agent, which accepts only statements that the gateway signs for operators. */
function isOperatorPath(path: string): boolean {
  return /^\/operator(\/|$)/i.test(decodeURIComponent(path))
}

/** Rethrows the error after reading the JSON-RPC id and the method, which determine the form of the error. */
async function refuse(
  request: FastifyRequest,
  address: CallAddress | undefined,
  error: unknown,
): Promise<never> {
  const body = isWhole(request, address, wholeMaxBytes) ? await bytesOf(request.body) : undefined
  if (body !== undefined) nameCall(request, address, body)
  throw error
}

/** Undefined if the client disconnected before the end of the body. */
function bytesOf(body: unknown): Promise<Buffer | undefined> {
  if (!(body instanceof Readable)) return Promise.resolve(Buffer.alloc(0))
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>()
  if (body.destroyed) return Promise.resolve(undefined)
  const chunks: Buffer[] = []
  body.on('data', (chunk: Buffer) => chunks.push(chunk))
  body.once('end', () => resolve(joined(chunks)))
  body.once('error', () => resolve(undefined))
  body.once('close', () => resolve(undefined))
  return promise
}

const unreadableRequest = () =>
  new ParleyError('InvalidRequest', {
    message:
      'The policy limits you to some skills of this agent: send JSON with a Content-Length, so that the gateway can read which skill the request names',
    data: { reason: 'policy' },
  })

/** Aborted when the client disconnects before the end of the response. */
function clientLeft(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort()
  })
  return controller.signal
}

function outgoing(request: FastifyRequest, headers: FastifyRequest['headers']) {
  const target = preparedOf(request)
  const { upstream, signal } = target
  const way: ForwardTarget = { upstream, signal }
  const hasBody = request.method !== 'GET' && request.method !== 'HEAD'
  return Object.assign(headersFor(request, target, { hasBody }, headers), { [forwardTargetKey]: way })
}

/** The response in the form in which @fastify/reply-from passes it. */
interface Answer {
  statusCode: number
  stream: Readable
}

function pass(reply: FastifyReply, { statusCode, stream }: Answer): void {
  // An agent may respond before it has read the whole body; after a success status it may still be reading.
  const { raw } = reply.request
  if (statusCode >= 400) linger(raw)
  else stream.once('end', () => linger(raw))
  if (!isBodiless(statusCode)) return void reply.send(stream)
  // A content length without a body causes an error on this stream only.
  stream.on('error', () => {}).resume()
  void reply.removeHeader('content-length').send()
}

function answerFailure(reply: FastifyReply, error: Error): void {
  // The client has disconnected.
  if (reply.raw.destroyed) return
  void reply.send(upstreamError(preparedOf(reply.request).entry.slug, error))
}

function preparedOf(request: FastifyRequest): Prepared {
  const target = prepared.get(request)
  if (target === undefined) throw new ParleyError('InternalError')
  return target
}
