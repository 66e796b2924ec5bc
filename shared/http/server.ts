import { randomUUID } from 'node:crypto'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import { errorEnvelope } from '../jsonrpc/envelope.ts'
import { ParleyError } from '../jsonrpc/errors.ts'
import type { Log } from '../process/log.ts'
import type { Metrics } from '../process/metrics.ts'
import { watchRequests } from './request-metrics.ts'
import { watchRoutes } from './wrong-method.ts'

export interface ServerOptions {
  log: Log
  metrics: Metrics
  /** Longest request body. Default 10 MiB. */
  bodyMaxBytes?: number
  /** Time a client may take to send a whole request. Default 60 s. */
  requestTimeoutMs?: number
}

/**
 * A Fastify server of the house: bodies arrive as bytes, every error of every route leaves as an envelope, each request
 * has an id that is returned, and the http_* series are counted. Routes come from the caller.
 */
export function createServer(options: ServerOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: options.bodyMaxBytes ?? 10 * 1024 * 1024,
    requestTimeout: options.requestTimeoutMs ?? 60_000,
    keepAliveTimeout: 72_000,
    http: { maxHeaderSize: 32 * 1024 },
    genReqId: (request) => requestId(request.headers),
    routerOptions: { maxParamLength: 256 },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => sendError(options.log, error, request, reply),
    clientErrorHandler: (error, socket) => answerBrokenHttp(error, socket),
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    done()
  })
  watchRequests(app, options.metrics)
  app.setErrorHandler<FastifyError>((error, request, reply) => sendError(options.log, error, request, reply))
  const refuse = watchRoutes(app)
  app.setNotFoundHandler((request, reply) => sendError(options.log, refuse(request), request, reply))
  return app
}

/** The log of one request: every line carries its id. */
export function requestLog(log: Log, request: FastifyRequest): Log {
  return log.child({ request_id: request.id })
}

/** The only place that turns a thrown value into an answer; `id` is null on everything that is not JSON-RPC. */
function sendError(log: Log, thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const error = fromFramework(thrown)
  if (error.status >= 500) requestLog(log, request).error({ err: error.cause ?? error }, error.message)
  void reply
    .code(error.status)
    .headers(error.headers)
    .type('application/json; charset=utf-8')
    .send(errorEnvelope(null, error))
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
function answerBrokenHttp(error: NodeJS.ErrnoException, socket: import('node:net').Socket): void {
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
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
