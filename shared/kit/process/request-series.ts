import { Counter, Gauge, Histogram, type Registry, Summary } from 'prom-client'

/** Upper bounds of the duration buckets, in seconds. */
const bounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** A request that has ended. */
export interface EndedRequest {
  method: string
  /** Pattern of the route. */
  endpoint: string
  status: number
  /** Empty for requests that are not JSON-RPC. */
  rpcMethod: string
  seconds: number
  requestBytes: number
  responseBytes: number
}

type RouteLabels = 'method' | 'endpoint'

/**
 * The http_* series. Requests are counted in plain numbers, from which the series are built when they are read, because
 * prom-client hashes all labels and updates a digest of quantiles with each observation.
 */
export class RequestSeries {
  inFlight = 0
  /** By method and endpoint. */
  readonly #routes = new Map<string, Map<string, RouteCounts>>()

  constructor(registry: Registry) {
    const routes = () => [...this.#routes.values()].flatMap((endpoints) => [...endpoints.values()])
    registry.registerMetric(requestsTotal(routes))
    registry.registerMetric(new Durations(routes))
    registry.registerMetric(new Sizes(routes, 'request', ({ requestBytes }) => requestBytes))
    registry.registerMetric(new Sizes(routes, 'response', ({ responseBytes }) => responseBytes))
    registry.registerMetric(requestsInFlight(() => this.inFlight))
  }

  add(request: EndedRequest): void {
    const { method, endpoint } = request
    const endpoints = valueOf(this.#routes, method, () => new Map<string, RouteCounts>())
    valueOf(endpoints, endpoint, () => new RouteCounts(method, endpoint)).add(request)
  }
}

class RouteCounts {
  readonly labels: { method: string; endpoint: string }
  /** Number of responses by JSON-RPC method and status. */
  readonly responses = new Map<string, Map<number, number>>()
  /** Number of requests by duration; the last bucket is unbounded. */
  readonly durations: number[] = Array.from({ length: bounds.length + 1 }, () => 0)
  requests = 0
  seconds = 0
  requestBytes = 0
  responseBytes = 0

  constructor(method: string, endpoint: string) {
    this.labels = { method, endpoint }
  }

  add({ status, rpcMethod, seconds, requestBytes, responseBytes }: EndedRequest): void {
    const statuses = valueOf(this.responses, rpcMethod, () => new Map<number, number>())
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    let bucket = 0
    while (bucket < bounds.length && seconds > (bounds[bucket] ?? 0)) bucket += 1
    this.durations[bucket] = (this.durations[bucket] ?? 0) + 1
    this.requests += 1
    this.seconds += seconds
    this.requestBytes += requestBytes
    this.responseBytes += responseBytes
  }
}

type Routes = () => RouteCounts[]

function requestsTotal(routes: Routes) {
  return new Counter({
    name: 'http_requests_total',
    help: 'HTTP requests by status of the response; 499: the client disconnected before it',
    labelNames: ['method', 'endpoint', 'status', 'rpc_method'],
    registers: [],
    collect() {
      this.reset()
      for (const { labels, responses } of routes())
        for (const [rpcMethod, counts] of responses)
          for (const [status, count] of counts) this.inc({ ...labels, status, rpc_method: rpcMethod }, count)
    },
  })
}

function requestsInFlight(inFlight: () => number) {
  return new Gauge({
    name: 'http_requests_in_flight',
    help: 'Requests in progress',
    registers: [],
    collect() {
      this.set(inFlight())
    },
  })
}

const durations = {
  name: 'http_request_duration_seconds',
  help: 'Time from request to response',
  labelNames: ['method', 'endpoint'],
} as const

class Durations extends Histogram<RouteLabels> {
  readonly #routes: Routes

  constructor(routes: Routes) {
    super({ ...durations, buckets: bounds, registers: [] })
    this.#routes = routes
  }

  /** A registry calls this method of a histogram for its values. */
  getForPromString() {
    const { name, help } = durations
    const values = this.#routes()
      .flatMap((route) => durationsOf(route))
      .map((value) => ({ ...value, sharedLabels: {} }))
    return Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values })
  }
}

function durationsOf({ labels, durations: counts, seconds, requests }: RouteCounts) {
  const { name } = durations
  let below = 0
  const buckets = counts.map((count, index) => {
    below += count
    return { metricName: `${name}_bucket`, labels: { le: bounds[index] ?? '+Inf', ...labels }, value: below }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: seconds },
    { metricName: `${name}_count`, labels, value: requests },
  ]
}

class Sizes extends Summary<RouteLabels> {
  readonly #routes: Routes
  readonly #bytesOf: (route: RouteCounts) => number

  constructor(routes: Routes, of: 'request' | 'response', bytesOf: (route: RouteCounts) => number) {
    super({
      name: `http_${of}_size_bytes`,
      help: `Size of ${of} bodies`,
      labelNames: ['method', 'endpoint'],
      percentiles: [],
      registers: [],
    })
    this.#routes = routes
    this.#bytesOf = bytesOf
  }

  override async get() {
    const { name, ...metric } = await super.get()
    const values = this.#routes().flatMap((route) => [
      { metricName: `${name}_sum`, labels: route.labels, value: this.#bytesOf(route) },
      { metricName: `${name}_count`, labels: route.labels, value: route.requests },
    ])
    return { ...metric, name, values }
  }
}

function valueOf<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = create()
    map.set(key, value)
  }
  return value
}
