import type { FastifyInstance } from 'fastify'
import type { Metrics } from '../process/metrics.ts'

/** `GET /metrics`: the text exposition format, version 0.0.4 (spec/operations.md#metrics). */
export function addMetricsRoute(app: FastifyInstance, metrics: Metrics): void {
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.registry.metrics()),
  )
}
