import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Counter, Histogram, Summary } from 'prom-client'
import type { Metrics } from '../process/metrics.ts'

/** Adds `GET /metrics` in the text exposition format, version 0.0.4 (spec/operations.md#metrics). */
export function addMetricsRoute(app: FastifyInstance, metrics: Metrics): void {
  app.get('/metrics', async (_request, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await metrics.registry.metrics()),
  )
}

/** Counts every request in the http_* series. The endpoint label is the route's pattern, to bound its cardinality. */
export function watchRequests(app: FastifyInstance, metrics: Metrics): void {
  const routes = new Map<string, RouteSeries>()
  const seriesOf = ({ method, routeOptions: { url = 'none' } }: FastifyRequest) => {
    const key = `${method} ${url}`
    let series = routes.get(key)
    if (series === undefined) {
      series = new RouteSeries(metrics, method, url)
      routes.set(key, series)
    }
    return series
  }
  app.addHook('onRequest', (request, reply, done) => {
    metrics.httpInFlight.inc()
    // `close` is emitted after the last byte, and also when the client disconnects earlier.
    reply.raw.once('close', () => {
      metrics.httpInFlight.dec()
      count(seriesOf(request), request, reply)
    })
    done()
  })
}

/** The status that nginx logs when the client disconnects before the response head is written. */
const clientClosedRequest = 499

function count(series: RouteSeries, request: FastifyRequest, reply: FastifyReply): void {
  const status = reply.raw.headersSent ? reply.statusCode : clientClosedRequest
  series.requests(status, request.rpcMethod ?? '').inc()
  series.duration.observe(reply.elapsedTime / 1000)
  series.requestSize.observe(Number(request.headers['content-length'] ?? 0))
  series.responseSize.observe(Number(reply.getHeader('content-length') ?? 0))
}

/** The series of one route. prom-client would otherwise hash the labels for each of them with every request. */
class RouteSeries {
  readonly duration: Histogram.Internal<'method' | 'endpoint'>
  readonly requestSize: Summary.Internal<'method' | 'endpoint'>
  readonly responseSize: Summary.Internal<'method' | 'endpoint'>
  readonly #counters = new Map<string, Counter.Internal>()
  readonly #counterFor: (status: number, rpcMethod: string) => Counter.Internal

  constructor(metrics: Metrics, method: string, endpoint: string) {
    this.duration = metrics.httpDuration.labels(method, endpoint)
    this.requestSize = metrics.httpRequestSize.labels(method, endpoint)
    this.responseSize = metrics.httpResponseSize.labels(method, endpoint)
    this.#counterFor = (status, rpcMethod) =>
      metrics.httpRequests.labels({ method, endpoint, status, rpc_method: rpcMethod })
  }

  requests(status: number, rpcMethod: string): Counter.Internal {
    const key = `${status} ${rpcMethod}`
    let counter = this.#counters.get(key)
    if (counter === undefined) {
      counter = this.#counterFor(status, rpcMethod)
      this.#counters.set(key, counter)
    }
    return counter
  }
}
