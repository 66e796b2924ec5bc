import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Metrics } from '../process/metrics.ts'
import type { RequestSeries } from '../process/request-series.ts'
import { exportMetrics } from '../telemetry/telemetry.ts'
import type { OperationDescription } from './route-description.ts'

const api: OperationDescription = {
  summary: 'Metrics in the text format of Prometheus',
  tag: 'operations',
  access: 'public',
  responses: { 200: { description: 'Metrics', content: { 'text/plain': z.string() } } },
}

/**
 * Adds `GET /metrics` in the text exposition format, version 0.0.4 (spec/operations.md#metrics). A process that exports metrics
 * exports the same ones.
 */
export function addMetricsRoute(app: FastifyInstance, metrics: Metrics): void {
  const exported = exportMetrics(metrics.registry)
  app.addHook('onClose', async () => exported[Symbol.dispose]())
  app.get('/metrics', { config: { api, trace: 'never' } }, async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.registry.metrics()),
  )
}

/** The status that nginx logs when the client disconnects before the response head is written. */
const clientClosedRequest = 499

/** Counts a request in the http_* series. The endpoint label is the route's pattern, to bound its cardinality. */
export function countRequest(series: RequestSeries, request: FastifyRequest, reply: FastifyReply): void {
  series.inFlight += 1
  // `close` is emitted once, after the last byte or when the client disconnects earlier.
  reply.raw.on('close', () => {
    series.inFlight -= 1
    series.add({
      method: request.method,
      endpoint: request.routeOptions.url ?? 'none',
      status: reply.raw.headersSent ? reply.statusCode : clientClosedRequest,
      rpcMethod: request.rpcMethod ?? '',
      seconds: reply.elapsedTime / 1000,
      requestBytes: Number(request.headers['content-length'] ?? 0),
      responseBytes: Number(reply.getHeader('content-length') ?? 0),
    })
  })
}
