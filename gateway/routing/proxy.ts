import { isIP } from 'node:net'
import type { Readable } from 'node:stream'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Dispatcher } from 'undici'
import { aboutTheAnswer } from '../../shared/http/security-headers.ts'
import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { checkLength, limited } from './body-limit.ts'
import { requestHeaders, responseHeaders } from './forward-headers.ts'
import { forwardPath } from './forward-path.ts'
import { abortable, type Way, wayKey } from './upstream.ts'
import { agentIsDown, agentIsNotTrusted, upstreamError } from './upstream-error.ts'

export interface ProxyOptions {
  /** The agent of a slug, where the registry knows one. */
  find: (slug: string) => AgentEntry | undefined
  /** Connections to the agent: those that registered from outside are behind the private-address guard. */
  wayTo: (entry: AgentEntry) => Dispatcher
  /** Default 10 MiB. */
  bodyMaxBytes?: number
}

/** Where a request goes; made by `prepare` before anything of it is forwarded. */
interface Target {
  entry: AgentEntry
  origin: string
  path: string
  way: Way
}

const targets = new WeakMap<FastifyRequest, Target>()

/**
 * `ANY /agents/{slug}/…`: the agent's own routes. Bytes, headers and event streams pass untouched; who may do what is for
 * the agent to say. Nothing is sent twice.
 */
export async function proxyAgents(app: FastifyInstance, options: ProxyOptions): Promise<void> {
  const maxBytes = options.bodyMaxBytes ?? 10 * 1024 * 1024
  await app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (request, body: Readable, done) => {
      done(null, request.headers['content-length'] === undefined ? limited(body, maxBytes) : body)
    })
    await scope.register(httpProxy, {
      prefix: '/agents/:slug',
      upstream: '',
      undici: abortable as never,
      proxyPayloads: false,
      disableRequestLogging: true,
      internalRewriteLocationHeader: false,
      preHandler: (request, reply, done) => {
        done(attempt(() => prepare(request, reply, options, maxBytes)))
      },
      handler: (request, reply, _destination, replyOptions) => {
        // The answer is the agent's, and so is what it says of it. An error of ours gets them back.
        for (const name of aboutTheAnswer) reply.removeHeader(name)
        return reply.from(targetOf(request).path, replyOptions)
      },
      replyOptions: {
        getUpstream: (request) => targetOf(request as FastifyRequest).origin,
        retryDelay: () => null,
        rewriteRequestHeaders: (request, headers) => outgoing(request as FastifyRequest, headers),
        rewriteHeaders: (headers) => responseHeaders(headers) as typeof headers,
        onError: (reply, { error }) => answerFailure(reply as FastifyReply, error),
      },
    })
  })
}

function attempt(step: () => void): Error | undefined {
  try {
    step()
    return undefined
  } catch (error) {
    return error as Error
  }
}

function prepare(
  request: FastifyRequest,
  reply: FastifyReply,
  options: ProxyOptions,
  maxBytes: number,
): void {
  checkLength(request.headers['content-length'], maxBytes)
  targets.set(request, resolve(request, reply, options))
}

function resolve(request: FastifyRequest, reply: FastifyReply, options: ProxyOptions): Target {
  const path = forwardPath(request.url)
  const { slug } = request.params as { slug: string }
  const entry = options.find(slug)
  if (entry === undefined) throw new ParleyError('NotFound', { data: { reason: 'agent' } })
  // With the request its bearer token would go there.
  if (!entry.admitted) throw agentIsNotTrusted(entry.slug, 'not_admitted')
  if (entry.quarantine?.by !== undefined) throw agentIsNotTrusted(entry.slug, 'quarantined')
  if (entry.status !== 'ready') throw agentIsDown(entry.slug)
  const { origin, pathname } = new URL(entry.url)
  const way = { upstream: options.wayTo(entry), signal: clientLeft(reply) }
  return { entry, origin, path: pathname.replace(/\/$/, '') + path, way }
}

/** Aborted when the client closes its connection before it has the whole answer. */
function clientLeft(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort()
  })
  return controller.signal
}

function outgoing(request: FastifyRequest, headers: FastifyRequest['headers']) {
  const { entry, way } = targetOf(request)
  const forwarded = requestHeaders(headers, {
    slug: entry.slug,
    addresses: addressesOf(request),
    host: request.host === '' ? undefined : request.host,
    protocol: request.protocol,
    requestId: request.id,
    hasBody: request.method !== 'GET' && request.method !== 'HEAD',
  })
  return Object.assign(forwarded, { [wayKey]: way })
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

function answerFailure(reply: FastifyReply, error: Error): void {
  // Nobody is there to read an answer.
  if (reply.raw.destroyed) return
  void reply.send(upstreamError(targetOf(reply.request).entry.slug, error))
}

function targetOf(request: FastifyRequest): Target {
  const target = targets.get(request)
  if (target === undefined) throw new ParleyError('InternalError')
  return target
}
