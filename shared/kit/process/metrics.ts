import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry, Summary } from 'prom-client'

/** Series of `GET /metrics` (spec/operations.md#metrics). Labels are bounded: route patterns, known methods, our own states. */
export interface Metrics {
  registry: Registry
  httpRequests: Counter<'method' | 'endpoint' | 'status' | 'rpc_method'>
  httpDuration: Histogram<'method' | 'endpoint'>
  httpRequestSize: Summary<'method' | 'endpoint'>
  httpResponseSize: Summary<'method' | 'endpoint'>
  httpInFlight: Gauge
}

/** Metrics of any server of the house. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  // A summary without percentiles is a sum and a count; percentiles would cost more than the request they measure.
  const sizes = { labelNames: ['method', 'endpoint'] as const, percentiles: [], registers }
  return {
    registry,
    httpRequests: new Counter({
      name: 'http_requests_total',
      help: 'HTTP requests by status of the answer; 499: the client left before it began',
      labelNames: ['method', 'endpoint', 'status', 'rpc_method'],
      registers,
    }),
    httpDuration: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from request to answer',
      labelNames: ['method', 'endpoint'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    }),
    httpRequestSize: new Summary({
      ...sizes,
      name: 'http_request_size_bytes',
      help: 'Size of request bodies',
    }),
    httpResponseSize: new Summary({
      ...sizes,
      name: 'http_response_size_bytes',
      help: 'Size of response bodies',
    }),
    httpInFlight: new Gauge({
      name: 'http_requests_in_flight',
      help: 'Requests not yet answered',
      registers,
    }),
  }
}

/** Metrics of an agent's work, in the same registry. */
export interface TaskMetrics {
  active: Gauge<'agent_id' | 'state'>
  completed: Counter<'agent_id' | 'state'>
  llmTokens: Counter<'agent_id' | 'direction' | 'model'>
}

/** @param refresh called before the counts of tasks are read, where they are not kept by whoever changes tasks */
export function createTaskMetrics(registry: Registry, refresh?: () => Promise<void>): TaskMetrics {
  const registers = [registry]
  const collect = refresh === undefined ? {} : { collect: refresh }
  return {
    active: new Gauge({
      name: 'agent_tasks_active',
      help: 'Tasks that have not ended, by state',
      labelNames: ['agent_id', 'state'],
      registers,
      ...collect,
    }),
    completed: new Counter({
      name: 'agent_tasks_completed_total',
      help: 'Tasks that have ended, by terminal state',
      labelNames: ['agent_id', 'state'],
      registers,
      ...collect,
    }),
    llmTokens: new Counter({
      name: 'agent_llm_tokens_total',
      help: 'Tokens of language models that handlers reported',
      labelNames: ['agent_id', 'direction', 'model'],
      registers,
    }),
  }
}
