import { randomUUID } from 'node:crypto'
import { dialectOf } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import { errorEnvelope, type RequestId } from '@parley/wire/jsonrpc/envelope'
import { type Deprecation, deprecationHeader } from '@parley/wire/model/deprecation'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { Audit } from '../process/audit.ts'
import type { Log } from '../process/log.ts'
import { logFailure } from '../process/log-failure.ts'
import type { Metrics } from '../process/metrics.ts'
import { auditError, auditRoutes, isDecision } from './audit-routes.ts'
import { allowOrigins } from './cors.ts'
import { faultOfHead } from './fault-of-head.ts'
import { linger } from './linger.ts'
import type { RequestLimits } from './request-limits.ts'
import { watchRequests } from './request-metrics.ts'
import { securityHeaders } from './security-headers.ts'
import { watchRoutes } from './wrong-method.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Id of the JSON-RPC request, set when a route that fails has read it. */
    rpcId?: RequestId
    /** JSON-RPC method, set when the method is known; a label of `http_requests_total`. */
    rpcMethod?: string
    /** Authenticated caller, set by the route; written to the audit log. */
    callerId?: string
    /** Target of the action, when the path does not name it; written to the audit log. */
    auditTarget?: string
  }
  interface FastifyContextConfig {
    /** Name of the action in the audit log. Set on routes that change something an operator must be able to trace. */
    audit?: string
  }
}

export interface ServerOptions {
  log: Log
  metrics: Metrics
  /** Longest request body. Default 10 MiB. */
  bodyMaxBytes?: number
  /** Time a client may take to send the head of a request. Default 20 s. */
  headersTimeoutMs?: number
  /** Time a client may take to send a whole request. Default 60 s. */
  requestTimeoutMs?: number
  /** How often the two are looked at. Default 5 s. */
  timeoutsCheckMs?: number
  /** Connections that are open at the same time; more are closed at once. Default 10,000. */
  connectionsMax?: number
  /**
   * A connection on which nothing moves in either direction. Default 16 minutes: a minute more than the gateway lets an
   * agent be silent in the middle of an answer.
   */
  idleTimeoutMs?: number
  /** Requests of a caller and of an address; absent: as many as they like. */
  limits?: RequestLimits | undefined
  /** Addresses and networks whose X-Forwarded-* headers are believed. Default: nobody's. */
  trustedProxies?: readonly string[]
  /** Origins whose pages may call from a browser; `*` = all. Default: none. */
  corsOrigins?: readonly string[]
  /** The address that clients use, where it is known from the start. */
  publicUrl?: string | undefined
  /** Deprecated names in use: each answer carries the `Deprecation` header, and each is a warning in the log. */
  deprecations?: readonly Deprecation[]
}

/** Between requests, a connection waits so long for the next: longer than the balancers that may stand before us. */
const keepAliveTimeoutMs = 72_000
const headersMaxBytes = 32 * 1024

/**
 * A Fastify server of the house: bodies arrive as bytes, every error of every route leaves as an envelope, each request
 * has an id that is returned, and the http_* series are counted. Routes come from the caller.
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const { log, limits, corsOrigins = [] } = options
  const audit = new Audit(log)
  const { deprecations = [] } = options
  for (const { name, since, use } of deprecations) log.warn({ name, since, use }, 'deprecated name in use')
  const headers = { ...securityHeaders(options.publicUrl), ...deprecationHeader(deprecations) }
  // Over what was set before: an answer that is an error is ours, whatever the route was about to answer.
  const answerError = (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
    sendError({ log, audit }, error, request, reply.headers(headers))
  const app = Fastify({
    logger: false,
    ...bounds(options),
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    rewriteUrl: ({ url = '/' }) => (url.startsWith('/') ? url : originForm(url)),
    genReqId: (request) => requestId(request.headers),
    routerOptions: { maxParamLength: 256 },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    frameworkErrors: answerError,
    clientErrorHandler: (error, socket) => answerBrokenHttp(error, socket, headers),
  })
  app.server.maxConnections = options.connectionsMax ?? 10_000
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(headers).header('x-request-id', request.id)
    done(faultOfHead(request.raw))
  })
  watchRequests(app, options.metrics)
  app.setErrorHandler<FastifyError>(answerError)
  const refuse = watchRoutes(app)
  app.setNotFoundHandler((request, reply) => answerError(refuse(request), request, reply))
  auditRoutes(app, audit)
  // Before the limits: a page must be able to read that it has asked too often.
  allowOrigins(app, corsOrigins)
  limits?.attach(app, audit)
  return app
}

/** What a client may take of the server: bytes and time. */
function bounds(options: ServerOptions) {
  const requestTimeoutMs = options.requestTimeoutMs ?? 60_000
  return {
    bodyLimit: options.bodyMaxBytes ?? 10 * 1024 * 1024,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionTimeout: options.idleTimeoutMs ?? 16 * 60_000,
    http: {
      maxHeaderSize: headersMaxBytes,
      // Checked with the rest of the head, so that the error has our envelope.
      requireHostHeader: false,
      headersTimeout: Math.min(options.headersTimeoutMs ?? 20_000, requestTimeoutMs),
      connectionsCheckingInterval: options.timeoutsCheckMs ?? 5000,
    },
  }
}

/** RFC 9112, section 3.2.2: the whole address as a proxy is asked for it. Whoever reads a path reads it from here. */
function originForm(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?#]*/i, '')
  return path.startsWith('?') || path === '' ? `/${path}` : path
}

/** The log of one request: every line carries its id. */
export function requestLog(log: Log, request: FastifyRequest): Log {
  return log.child({ request_id: request.id })
}

/** The only place that turns a thrown value into an answer; `id` is null where no route has read one. */
function sendError(
  { log, audit }: { log: Log; audit: Audit },
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const left = hasLeft(request, thrown)
  if (left) requestLog(log, request).debug('the client left in the middle of its request')
  const error = left ? brokenOff(thrown) : fromFramework(thrown)
  if (error.status >= 500 && !isDecision(error)) logFailure(requestLog(log, request), error)
  auditError(audit, request, error)
  linger(request.raw)
  const path = request.url.split('?', 1)[0] ?? ''
  const { status, ...written } = dialectOf({ path, headers: request.headers }).writeError(error)
  void reply
    .code(status)
    .header('cache-control', 'no-store')
    .headers(error.headers)
    .type('application/json; charset=utf-8')
    .send(errorEnvelope(request.rpcId ?? null, written))
}

/** Whoever reads a body as a stream sees that as a fault of the connection; it is nobody's but the client's. */
function hasLeft({ raw }: FastifyRequest, thrown: unknown): boolean {
  return (
    !raw.complete && raw.destroyed && (thrown as NodeJS.ErrnoException | undefined)?.code === 'ECONNRESET'
  )
}

/** Nobody reads it: for the logs and the counters. */
function brokenOff(cause: unknown): ParleyError {
  return new ParleyError('InvalidRequest', { message: 'Request body broke off', cause })
}

function fromFramework(thrown: unknown): ParleyError {
  if (thrown instanceof ParleyError) return thrown
  const { statusCode, code } = thrown as Partial<FastifyError>
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new ParleyError('InvalidRequest', { status: 413, message: 'Request body is too large' })
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new ParleyError('InvalidRequest', {
      status: 415,
      message: 'Content type must be application/json',
    })
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new ParleyError('InvalidRequest', { status: statusCode === 404 ? 404 : 400, cause: thrown })
  }
  return ParleyError.from(thrown)
}

/** From `X-Request-Id`, else the trace id of `traceparent`, else a new one. Odd values are not passed on. */
function requestId(headers: NodeJS.Dict<string | string[]>): string {
  const given = headers['x-request-id']
  if (typeof given === 'string' && /^[\w.:/+=-]{1,128}$/.test(given)) return given
  const trace = headers['traceparent']
  const match =
    typeof trace === 'string'
      ? /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}$/.exec(trace)
      : null
  return match?.[1] ?? randomUUID()
}

/** What arrives here is not HTTP that Node can read: answer by hand and close. */
function answerBrokenHttp(
  error: NodeJS.ErrnoException,
  socket: import('node:net').Socket,
  headers: Record<string, string>,
): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const [status, text] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'Request headers are too large']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'Request took too long']
        : ['400 Bad Request', 'Request is not valid HTTP']
  const body = errorEnvelope(null, new ParleyError('InvalidRequest', { message: text }))
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(
    `HTTP/1.1 ${status}\r\n${lines.join('')}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
