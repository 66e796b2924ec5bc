import { randomUUID } from 'node:crypto'
import type { RestBinding } from '@parley/wire/codecs/codec'
import { defaultDialect, dialectOf, partsOf, restOf } from '@parley/wire/codecs/dialects'
import { type ErrorAnswer, writeErrorAnswer, writeRestErrorAnswer } from '@parley/wire/codecs/error-answer'
import { ParleyError } from '@parley/wire/errors'
import { errorEnvelope, type RequestId } from '@parley/wire/jsonrpc/envelope'
import { type Deprecation, deprecationHeader } from '@parley/wire/model/deprecation'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { errorCode } from '../net/error-code.ts'
import { Audit } from '../process/audit.ts'
import type { Log } from '../process/log.ts'
import { logFailure } from '../process/log-failure.ts'
import type { Metrics } from '../process/metrics.ts'
import { auditError, auditRoutes, isDecision } from './audit-routes.ts'
import { allowOrigins } from './cors.ts'
import { faultOfHead } from './fault-of-head.ts'
import { linger } from './linger.ts'
import { countRequest } from './metrics.ts'
import type { RequestLimits } from './request-limits.ts'
import { findRestCall } from './rest-call.ts'
import { recordRoutes } from './route-description.ts'
import { securityHeaders } from './security-headers.ts'
import { traceRequests } from './trace-requests.ts'
import { watchRoutes } from './wrong-method.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Id of the JSON-RPC request, for the error response; set by the route. */
    rpcId?: RequestId
    /** JSON-RPC method, set when the method is known; a label of `http_requests_total`. */
    rpcMethod?: string
    /** Authenticated caller, set by the route; written to the audit log. */
    callerId?: string
    /** Target of the action if the path does not name it; written to the audit log. */
    auditTarget?: string
  }
  interface FastifyContextConfig {
    /** Name of the action in the audit log. Set on routes that change something an operator must be able to trace. */
    audit?: string
    /** Set on routes without a JSON-RPC envelope; errors have its form. */
    rest?: Pick<RestBinding, 'writeError'>
  }
}

export interface ServerOptions {
  log: Log
  metrics: Metrics
  /** Whether the current request is sent by another route of the server, and is not counted. Default: no. */
  isInner?: () => boolean
  /** Maximum size of a request body. Default 10 MiB. */
  bodyMaxBytes?: number
  /** Time limit for receiving the head of a request. Default 20 s. */
  headersTimeoutMs?: number
  /** Time limit for receiving a whole request. Default 60 s. */
  requestTimeoutMs?: number
  /** How often these two limits are checked. Default 5 s. */
  timeoutsCheckMs?: number
  /** Maximum number of open connections; additional ones are closed on arrival. Default 10,000. */
  connectionsMax?: number
  /**
   * Connections without traffic in either direction for this long are closed. Default 16 minutes, one minute longer
   * than the gateway waits for the next bytes of an agent's response.
   */
  idleTimeoutMs?: number
  /** Rate limits per caller and per address. Default: none. */
  limits?: RequestLimits | undefined
  /** Addresses and networks of proxies whose X-Forwarded-* headers are trusted. Default: none. */
  trustedProxies?: readonly string[]
  /** Origins allowed by CORS; `*` allows all. Default: none. */
  corsOrigins?: readonly string[]
  /** The address that clients use, if it is known at startup. */
  publicUrl?: string | undefined
  /** Returns the path that selects the dialect of an error. Default: the path of the request. */
  dialectPath?: (path: string) => string
  /** Returns the answer to an error on the paths of another interface; undefined for other paths. */
  errorAnswer?: (path: string, error: ParleyError) => ErrorAnswer | undefined
  /** Deprecated names in use: responses have the `Deprecation` header, and each name is logged as a warning. */
  deprecations?: readonly Deprecation[]
}

/** Idle time between requests on a connection, which is longer than that of common load balancers. */
const keepAliveTimeoutMs = 72_000
const headersMaxBytes = 32 * 1024
/** The length of a part of a path that is a parameter. */
const segmentMaxChars = 256

/**
 * Creates a Fastify server without routes. Bodies are parsed as bytes, errors from all routes are sent in an error
 * envelope, the id of a request is returned in `X-Request-Id`, and requests are counted in the http_* series.
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const { log, limits, corsOrigins = [] } = options
  const audit = new Audit(log)
  const { deprecations = [] } = options
  for (const { name, since, use } of deprecations) log.warn({ name, since, use }, 'deprecated name in use')
  const headers = { ...securityHeaders(options.publicUrl), ...deprecationHeader(deprecations) }
  // An error response overrides headers that the route has set.
  const handleError = (error: unknown, request: FastifyRequest, reply: FastifyReply) =>
    sendError({ ...options, audit }, error, request, reply.headers(headers))
  const app = Fastify({
    logger: false,
    ...bounds(options),
    trustProxy: options.trustedProxies?.length ? [...options.trustedProxies] : false,
    rewriteUrl: ({ url = '/' }) => (url.startsWith('/') ? url : originForm(url)),
    genReqId: (request) => requestId(request.headers),
    routerOptions: { maxParamLength: segmentMaxChars },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    frameworkErrors: handleError,
    clientErrorHandler: (error, socket) => respondToMalformedRequest(error, socket, headers),
  })
  app.server.maxConnections = options.connectionsMax ?? 10_000
  app.removeAllContentTypeParsers()
  // Fastify caches the parser of a named type, and parses the header again for each request that only `*` matches.
  app.addContentTypeParser(['application/json', '*'], { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  )
  app.addHook('onRequest', (request, reply, done) => {
    if (options.isInner?.() !== true) countRequest(options.metrics.requests, request, reply)
    reply.headers(headers).header('x-request-id', request.id)
    done(faultOfHead(request.raw))
  })
  app.setErrorHandler<FastifyError>(handleError)
  recordRoutes(app)
  const refuse = watchRoutes(app)
  app.setNotFoundHandler((request, reply) => handleError(refuse(request), request, reply))
  auditRoutes(app, audit)
  // CORS comes before the limits, so that a page can read a 429.
  allowOrigins(app, corsOrigins)
  limits?.attach(app, audit)
  traceRequests(app)
  return app
}

/** Returns the limits on the size of requests and the duration of connections. */
function bounds(options: ServerOptions) {
  const requestTimeoutMs = options.requestTimeoutMs ?? 60_000
  return {
    bodyLimit: options.bodyMaxBytes ?? 10 * 1024 * 1024,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    connectionTimeout: options.idleTimeoutMs ?? 16 * 60_000,
    http: {
      maxHeaderSize: headersMaxBytes,
      // `faultOfHead` checks the Host header, so that the error has the envelope.
      requireHostHeader: false,
      headersTimeout: Math.min(options.headersTimeoutMs ?? 20_000, requestTimeoutMs),
      connectionsCheckingInterval: options.timeoutsCheckMs ?? 5000,
    },
  }
}

/** Converts a request target in absolute form (RFC 9112, section 3.2.2) to origin form. */
function originForm(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?#]*/i, '')
  return path.startsWith('?') || path === '' ? `/${path}` : path
}

/** Returns a logger that adds the id of the request to every line. */
export function requestLog(log: Log, request: FastifyRequest): Log {
  return log.child({ request_id: request.id })
}

type ErrorOptions = Pick<ServerOptions, 'dialectPath' | 'errorAnswer'>

/** Turns a thrown value into a response; its `id` is null if no route has read one. */
function sendError(
  options: ErrorOptions & { log: Log; audit: Audit },
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const { log, audit } = options
  const aborted = isAborted(request, thrown)
  if (aborted) requestLog(log, request).debug('client disconnected before its request was complete')
  const error = aborted ? incompleteRequest(thrown) : fromFramework(thrown)
  if (error.status >= 500 && !isDecision(error)) logFailure(requestLog(log, request), error)
  auditError(audit, request, error)
  linger(request.raw)
  const { status, type, body } = errorAnswer(request, error, options)
  void reply.code(status).header('cache-control', 'no-store').headers(error.headers).type(type).send(body)
}

/** Writes the error in the dialect of the route, or in the one that the path and the headers select. */
function errorAnswer(
  request: FastifyRequest,
  error: ParleyError,
  { dialectPath = (path) => path, errorAnswer: answerOf }: ErrorOptions,
): ErrorAnswer {
  const { path, query } = partsOf(request.url)
  const other = answerOf?.(path, error)
  if (other !== undefined) return other
  const { rpcMethod: method } = request
  const wire = {
    path: dialectPath(path),
    query,
    headers: request.headers,
    ...(method !== undefined && { method }),
  }
  const rest =
    request.routeOptions.config.rest ??
    restOf(wire) ??
    findRestCall(request.method, wire.path, query)?.binding
  if (rest !== undefined) return writeRestErrorAnswer(rest, error)
  // Only POST carries JSON-RPC, whose dialects may answer errors with 200.
  const codec = request.method === 'POST' ? dialectOf(wire) : defaultDialect
  const operation = codec.methods.get(method ?? '')?.operation
  const answer = writeErrorAnswer(codec, error, { id: request.rpcId ?? null, operation })
  // Only a call may be answered with another status than that of the error.
  return ['GET', 'HEAD'].includes(request.method) ? { ...answer, status: error.status } : answer
}

/** Whether the client disconnected, which a route that streams the body sees as a connection error. */
function isAborted({ raw }: FastifyRequest, thrown: unknown): boolean {
  return !raw.complete && raw.destroyed && errorCode(thrown) === 'ECONNRESET'
}

/** Returns an error that is only logged and counted, because the client has disconnected. */
function incompleteRequest(cause: unknown): ParleyError {
  return new ParleyError('InvalidRequest', { message: 'Request body is incomplete', cause })
}

function fromFramework(thrown: unknown): ParleyError {
  if (thrown instanceof ParleyError) return thrown
  const code = errorCode(thrown)
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new ParleyError('InvalidRequest', { status: 413, message: 'Request body is too large' })
  }
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new ParleyError('InvalidRequest', {
      status: 415,
      message: 'Content type must be application/json',
    })
  }
  if (code === 'FST_ERR_BAD_URL')
    return new ParleyError('InvalidRequest', { message: 'The path has an invalid escape', cause: thrown })
  if (code === 'FST_ERR_MAX_PARAM_LENGTH')
    return new ParleyError('InvalidRequest', {
      message: `A segment of the path is longer than ${segmentMaxChars} characters`,
      cause: thrown,
    })
  const statusCode = thrown instanceof Error && 'statusCode' in thrown ? thrown.statusCode : undefined
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new ParleyError('InvalidRequest', { status: statusCode === 404 ? 404 : 400, cause: thrown })
  }
  return ParleyError.from(thrown)
}

/** Returns `X-Request-Id`, else the trace id of `traceparent`, else a new id. Malformed values are ignored. */
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

/** Responds to a request that Node cannot parse, and closes the connection. */
function respondToMalformedRequest(
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
