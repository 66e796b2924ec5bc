import type { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import { requireNoDelegate } from '@parley/kit/auth/authenticate'
import type { Caller } from '@parley/kit/auth/caller'
import { linger } from '@parley/kit/http/linger'
import { peekId, readCall, requireOperation } from '@parley/kit/http/rpc-call'
import { contentHeaders } from '@parley/kit/http/security-headers'
import { defaultDialect, dialectOf, rpcPaths } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isExternal } from '../../registry/admission.ts'
import { type DispatcherFor, type Target, targetOf } from './agent-target.ts'
import type { AuthorizedTarget, NamedAgentTokens } from './agent-tokens.ts'
import { checkLength, limited } from './body-limit.ts'
import { isBodiless, joined } from './exchange.ts'
import { responseHeaders } from './forward-headers.ts'
import { forwardPath } from './forward-path.ts'
import type { ReferenceGrants } from './reference-grants.ts'
import { headersFor, type RelayOptions, type ReportSignal, relay } from './relay.ts'
import { type FoundAgent, limitedAnswer, requireAllowedSkills } from './skill-limit.ts'
import { abortable, type ForwardTarget, forwardTargetKey } from './upstream.ts'
import { upstreamError } from './upstream-error.ts'

export interface ResponseRecorder {
  /** Returns undefined for a request whose response is not recorded. */
  observerOf: (
    request: FastifyRequest,
    reply: FastifyReply,
    target: Target,
    body: Buffer,
  ) => RelayOptions['watch']
}

export interface ProxyOptions {
  /** Finds the agent with this slug, or undefined if the sender of the request may not see it. */
  find: (slug: string, request: FastifyRequest) => FoundAgent | undefined | Promise<FoundAgent | undefined>
  dispatcherFor: DispatcherFor
  tokens: Pick<NamedAgentTokens, 'authorize'>
  /** Lets agents read the tasks that messages refer to. */
  grants?: ReferenceGrants
  /** Called with the outcome of every forwarded POST of JSON. */
  reportSignal?: ReportSignal
  /** Records the tasks and payment sessions of external agents from their responses. */
  routes?: ResponseRecorder
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

/** Checks the request and forwards a POST of JSON; other requests continue to the handler of @fastify/http-proxy. */
async function prepare(
  request: FastifyRequest,
  reply: FastifyReply,
  options: ProxyOptions,
  maxBytes: number,
): Promise<unknown> {
  let found: FoundAgent
  let target: AuthorizedTarget
  let isBuffered: boolean
  try {
    checkLength(request.headers['content-length'], maxBytes)
    const path = forwardPath(request.url)
    found = await resolve(request, options)
    const { entry, requireSkill } = found
    target = await options.tokens.authorize(request, targetOf(entry, path, options.dispatcherFor), path)
    const limited = requireSkill && limitedAnswer(request, path, entry)
    if (limited !== undefined) return reply.send(limited)
    const isRecorded = options.routes !== undefined && isExternal(entry)
    const caller = request.token?.caller
    const isRead = isRecorded || requireSkill !== undefined || caller?.delegate !== undefined
    isBuffered = isJsonPost(request, isRead ? maxBytes : wholeMaxBytes)
    if (requireSkill !== undefined && request.method === 'POST' && !isBuffered) throw unreadableRequest()
    if (caller !== undefined && !isBuffered) requireNoDelegate(caller)
  } catch (error) {
    return refuse(request, error)
  }
  // Skips the handler of @fastify/http-proxy, which would double the cost.
  if (isBuffered) return relayWhole(request, reply, { ...options, target, found })
  const { body } = request
  // This must not happen earlier, because a stream without a reader could emit an error without a listener.
  if (body !== undefined) request.body = limited(body as Readable, maxBytes)
  prepared.set(request, { ...target, signal: clientLeft(reply) })
  return undefined
}

/** True for most requests, which are small enough to be buffered and sent in one piece. */
function isJsonPost({ method, headers }: FastifyRequest, maxBytes: number): boolean {
  const length = headers['content-length']
  const isJson = headers['content-type']?.startsWith('application/json') === true
  return method === 'POST' && isJson && length !== undefined && Number(length) <= maxBytes
}

async function relayWhole(
  request: FastifyRequest,
  reply: FastifyReply,
  {
    target,
    found: { requireSkill },
    reportSignal,
    routes,
    grants,
  }: Pick<ProxyOptions, 'reportSignal' | 'routes' | 'grants'> & {
    target: AuthorizedTarget
    found: FoundAgent
  },
) {
  const body = await bytesOf(request.body as Readable)
  if (body === undefined) return reply.hijack()
  const query = request.url.indexOf('?')
  const path = query === -1 ? target.path : target.path + request.url.slice(query)
  try {
    if (request.token?.caller.delegate !== undefined) requireDelegable(request, request.token.caller, body)
    if (requireSkill !== undefined) await requireAllowedSkills(body, requireSkill)
    const watch = routes?.observerOf(request, reply, target, body)
    const references = await grants?.create(request.token, target.entry.id, referencesIn(body))
    const sent = { ...target, path, references }
    return await relay(request, reply, sent, { body }, { reportSignal, watch })
  } catch (error) {
    request.rpcId = peekId(body)
    throw error
  }
}

/** The tasks that a message refers to. Most requests do not contain the name of the field and are not parsed. */
function referencesIn(body: Buffer): readonly string[] {
  if (!body.includes('eference')) return []
  const call = jsonOf(body.toString('utf8'))
  return isObject(call) ? defaultDialect.readReferences(call['params']) : []
}

/**
 * Allows an agent that acts for a client to send messages and to use tasks (spec/authentication.md#delegated-tokens).
 * @throws ParleyError InsufficientPermissions; InvalidRequest and others if the body is not a JSON-RPC call
 */
function requireDelegable(
  { url, headers, method: httpMethod }: FastifyRequest,
  caller: Caller,
  body: Buffer,
): void {
  const path = forwardPath(url)
  const rpcPath = rpcPaths().find((one) => one.path === path)
  if (rpcPath === undefined) return requireNoDelegate(caller)
  const bytes = { headers, method: httpMethod, url, bytes: body, pathMethod: rpcPath.method }
  const { method } = readCall(bytes, { id: null }, dialectOf({ path, headers }))
  const operation = dialectOf({ path, headers, method }).methods.get(method)?.operation
  if (operation === undefined) throw new ParleyError('MethodNotFound')
  requireOperation(caller, operation)
}

/** Rethrows the error after reading the JSON-RPC id, which the error response carries. */
async function refuse(request: FastifyRequest, error: unknown): Promise<never> {
  const body = isJsonPost(request, wholeMaxBytes) ? await bytesOf(request.body as Readable) : undefined
  if (body !== undefined) request.rpcId = peekId(body)
  throw error
}

/** Undefined if the client disconnected before the end of the body. */
function bytesOf(body: Readable): Promise<Buffer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>()
  if (body.destroyed) return Promise.resolve(undefined)
  const chunks: Buffer[] = []
  body.on('data', (chunk: Buffer) => chunks.push(chunk))
  body.once('end', () => resolve(joined(chunks)))
  body.once('error', () => resolve(undefined))
  body.once('close', () => resolve(undefined))
  return promise
}

async function resolve(request: FastifyRequest, options: ProxyOptions): Promise<FoundAgent> {
  const { slug } = request.params as { slug: string }
  const found = await options.find(slug, request)
  if (found === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
  return found
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
