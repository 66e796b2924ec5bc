import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from '../process/metrics.ts'

/** Adds `GET /metrics` in the text exposition format, version 0.0.4 (spec/operations.md#metrics). */
export function addMetricsRoute(app: FastifyInstance, metrics: Metrics): void {
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.registry.metrics()),
  )
}

/** Counts every request in the http_* series. The endpoint label is the route's pattern, to bound its cardinality. */
export function watchRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onRequest', (request, reply, done) => {
    metrics.httpInFlight.inc()
    // `close` is emitted after the last byte, and also when the client disconnects earlier.
    reply.raw.once('close', () => count(metrics, request, reply))
    done()
  })
}

/** The status that nginx logs when the client disconnects before the response head is written. */
const clientClosedRequest = 499

function count(metrics: Metrics, request: FastifyRequest, reply: FastifyReply): void {
  const route = { method: request.method, endpoint: request.routeOptions.url ?? 'none' }
  const status = reply.raw.headersSent ? reply.statusCode : clientClosedRequest
  metrics.httpInFlight.dec()
  metrics.httpRequests.inc({ ...route, status, rpc_method: request.rpcMethod ?? '' })
  metrics.httpDuration.observe(route, reply.elapsedTime / 1000)
  metrics.httpRequestSize.observe(route, Number(request.headers['content-length'] ?? 0))
  metrics.httpResponseSize.observe(route, Number(reply.getHeader('content-length') ?? 0))
}
