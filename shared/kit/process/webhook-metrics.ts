import { Counter, Gauge, Histogram, type Registry } from 'prom-client'

/** Metrics for an agent's webhook deliveries. */
export interface WebhookMetrics {
  /** @param outcome `delivered`, or the reason why delivery was abandoned */
  ended(outcome: string, events: number): void
  /** @param seconds from the commit of an event to its acknowledgement */
  delivered(seconds: number): void
  /** @param queued returns the number of queued events; called when metrics are read */
  watchQueue(queued: () => number): void
}

export function createWebhookMetrics(registry: Registry, agentId: string): WebhookMetrics {
  const registers = [registry]
  let queued = () => 0
  const labels = { agent_id: agentId }
  const deliveries = new Counter({
    name: 'agent_webhook_deliveries_total',
    help: 'Webhook events by outcome',
    labelNames: ['agent_id', 'outcome'],
    registers,
  })
  const latency = new Histogram({
    name: 'agent_webhook_delivery_seconds',
    help: 'Time from the commit of an event to its acknowledgement by the receiver',
    labelNames: ['agent_id'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300],
    registers,
  })
  const gauge: Gauge<'agent_id'> = new Gauge({
    name: 'agent_webhook_events_queued',
    help: 'Webhook events queued or being delivered',
    labelNames: ['agent_id'],
    registers,
    collect: () => gauge.set(labels, queued()),
  })
  // Exports the series with 0 before the first delivery.
  deliveries.inc({ ...labels, outcome: 'delivered' }, 0)
  return {
    ended: (outcome, events) => deliveries.inc({ ...labels, outcome }, events),
    delivered: (seconds) => latency.observe(labels, seconds),
    watchQueue: (count) => {
      queued = count
    },
  }
}
