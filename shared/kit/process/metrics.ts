import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry, Summary } from 'prom-client'

/** The series in `GET /metrics` (spec/operations.md#metrics). All labels have a bounded set of values. */
export interface Metrics {
  registry: Registry
  httpRequests: Counter<'method' | 'endpoint' | 'status' | 'rpc_method'>
  httpDuration: Histogram<'method' | 'endpoint'>
  httpRequestSize: Summary<'method' | 'endpoint'>
  httpResponseSize: Summary<'method' | 'endpoint'>
  httpInFlight: Gauge
}

/** Creates the metrics that every server has. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  // Percentiles are disabled, because computing them costs more than a request. Only a sum and a count remain.
  const sizes = { labelNames: ['method', 'endpoint'] as const, percentiles: [], registers }
  return {
    registry,
    httpRequests: new Counter({
      name: 'http_requests_total',
      help: 'HTTP requests by status of the response; 499: the client disconnected before it',
      labelNames: ['method', 'endpoint', 'status', 'rpc_method'],
      registers,
    }),
    httpDuration: new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from request to response',
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
      help: 'Requests in progress',
      registers,
    }),
  }
}

/** Metrics for an agent's tasks. */
export interface TaskMetrics {
  active: Gauge<'agent_id' | 'state'>
  completed: Counter<'agent_id' | 'state'>
  llmTokens: Counter<'agent_id' | 'direction' | 'model'>
}

/** @param refresh updates the counts before they are read, if they are not updated with every task change */
export function createTaskMetrics(registry: Registry, refresh?: () => Promise<void>): TaskMetrics {
  const registers = [registry]
  const collect = refresh === undefined ? {} : { collect: refresh }
  return {
    active: new Gauge({
      name: 'agent_tasks_active',
      help: 'Tasks in progress, by state',
      labelNames: ['agent_id', 'state'],
      registers,
      ...collect,
    }),
    completed: new Counter({
      name: 'agent_tasks_completed_total',
      help: 'Finished tasks, by terminal state',
      labelNames: ['agent_id', 'state'],
      registers,
      ...collect,
    }),
    llmTokens: new Counter({
      name: 'agent_llm_tokens_total',
      help: 'Language model tokens reported by handlers',
      labelNames: ['agent_id', 'direction', 'model'],
      registers,
    }),
  }
}
