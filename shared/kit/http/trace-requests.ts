import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type TraceContext, traceContextIn } from '../telemetry/trace-context.ts'
import { type Span, type Tracing, tracing } from '../telemetry/tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The span of the request. Its steps are children of it. */
    span?: Span
  }
  interface FastifyContextConfig {
    /**
     * `never`: requests have no span, because monitoring or the agents send them all the time. `route`: the route starts
     * the span when it has read the body, which names the trace.
     */
    trace?: 'never' | 'route'
  }
}

/**
 * Starts a span for each request after its head and body were read, if traces are exported. The steps of the request run within
 * it. Nothing is added to servers of other processes.
 */
export function traceRequests(app: FastifyInstance): void {
  const active = tracing()
  if (active === undefined) return
  app.addHook('preHandler', (request, reply, done) => {
    const { trace, api } = request.routeOptions.config
    if (trace !== undefined) return done()
    const parent = traceContextIn(request.headers)
    if (parent === undefined && !isWork(api)) return done()
    return active.run(startRequestSpan(active, request, reply, parent), done)
  })
}

/** The parts of a request that do not depend on its route. */
type RequestHead = Pick<FastifyRequest, 'headers' | 'method' | 'routeOptions' | 'rpcMethod' | 'span'>

/** Runs the rest of a route with `trace: 'route'`. @param sent the trace that the body names */
export function inRequestSpan<T>(
  request: RequestHead,
  reply: FastifyReply,
  sent: TraceContext | undefined,
  run: () => T,
): T {
  const active = tracing()
  if (active === undefined) return run()
  return active.run(startRequestSpan(active, request, reply, sent ?? traceContextIn(request.headers)), run)
}

const tagsOfWork = new Set<unknown>(['agents', 'tasks', 'openai', 'negotiation'])

/**
 * Whether requests of the route begin a trace. Those of other routes, such as introspection, are only recorded as steps of the
 * trace of their caller. The calls of dialects are described when the description is read.
 */
function isWork(api: FastifyContextConfig['api']): boolean {
  return typeof api === 'function' || tagsOfWork.has(api?.tag)
}

/** The span ends when the response has ended or the client has disconnected. */
function startRequestSpan(
  active: Tracing,
  request: RequestHead,
  reply: FastifyReply,
  given: TraceContext | undefined,
): Span {
  const { method, routeOptions } = request
  const route = routeOptions.url ?? 'none'
  const name = `${method} ${route}`
  const parent = given ?? 'none'
  const startedAt = Date.now() - reply.elapsedTime
  const span = active.start(name, { kind: 'server', parent, startedAt })
  request.span = span
  void reply.header('traceresponse', span.context.traceparent)
  if (!span.isRecording) return span
  span.set({ 'http.request.method': method, 'http.route': route })
  reply.raw.once('close', () => {
    const { rpcMethod } = request
    if (rpcMethod !== undefined) {
      span.rename(rpcMethod)
      span.set({ 'rpc.system.name': 'jsonrpc', 'rpc.method': rpcMethod })
    }
    const status = reply.raw.headersSent ? reply.raw.statusCode : undefined
    span.set({ 'http.response.status_code': status })
    if (status === undefined) span.fail('disconnected')
    else if (status >= 500) span.fail(String(status))
    span.end()
  })
  return span
}
