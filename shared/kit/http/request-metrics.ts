import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from '../process/metrics.ts'

/** Counts every request into the http_* series. The endpoint label is the route's pattern, so that it stays bounded. */
export function watchRequests(app: FastifyInstance, metrics: Metrics): void {
  app.addHook('onRequest', (request, reply, done) => {
    metrics.httpInFlight.inc()
    // `close` comes after the last byte, and also when the caller leaves before it.
    reply.raw.once('close', () => count(metrics, request, reply))
    done()
  })
}

/** As nginx counts it: the connection closed before the head of an answer was written. */
const leftBeforeAnswer = 499

function count(metrics: Metrics, request: FastifyRequest, reply: FastifyReply): void {
  const route = { method: request.method, endpoint: request.routeOptions.url ?? 'none' }
  const status = reply.raw.headersSent ? reply.statusCode : leftBeforeAnswer
  metrics.httpInFlight.dec()
  metrics.httpRequests.inc({ ...route, status, rpc_method: request.rpcMethod ?? '' })
  metrics.httpDuration.observe(route, reply.elapsedTime / 1000)
  metrics.httpRequestSize.observe(route, Number(request.headers['content-length'] ?? 0))
  metrics.httpResponseSize.observe(route, Number(reply.getHeader('content-length') ?? 0))
}
