import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { RequestSeries } from './request-series.ts'

/** The series in `GET /metrics` (spec/operations.md#metrics). All labels have a bounded set of values. */
export interface Metrics {
  registry: Registry
  requests: RequestSeries
}

/** Creates the metrics that every server has. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 })
  return { registry, requests: new RequestSeries(registry) }
}

/** Metrics for an agent's tasks. */
export interface TaskMetrics {
  active: Gauge<'agent_id' | 'state'>
  completed: Counter<'agent_id' | 'state'>
  llmTokens: Counter<'agent_id' | 'direction' | 'model'>
  queueWait: Histogram<'agent_id'>
}

/**
 * @param agent its name is the label of `agent_info`, with which queries replace the ID
 * @param refresh updates the counts before they are read, if they are not updated with every task change
 */
export function createTaskMetrics(
  registry: Registry,
  agent: { id: string; name: string },
  refresh?: () => Promise<void>,
): TaskMetrics {
  const registers = [registry]
  const collect = refresh === undefined ? {} : { collect: refresh }
  const info = new Gauge({
    name: 'agent_info',
    help: 'Always 1: the name of the agent',
    labelNames: ['agent_id', 'name'],
    registers,
  })
  info.set({ agent_id: agent.id, name: agent.name.slice(0, 100) }, 1)
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
    queueWait: new Histogram({
      name: 'agent_queue_wait_seconds',
      help: 'Time from a message to the start of its handler',
      labelNames: ['agent_id'],
      buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800],
      registers,
    }),
  }
}
