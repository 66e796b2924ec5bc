import { emptyResource } from '@opentelemetry/resources'
import { DataPointType, type MetricData } from '@opentelemetry/sdk-metrics'
import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client'
import { expect, test } from 'vitest'
import { RegistryProducer } from './metrics.ts'

async function exported(...registries: Registry[]): Promise<Map<string, MetricData>> {
  const { resourceMetrics } = await new RegistryProducer(emptyResource(), () => registries).collect()
  const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics)
  return new Map(metrics.map((metric) => [metric.descriptor.name, metric]))
}

test('counters and gauges keep their labels as attributes', async () => {
  const registry = new Registry()
  const registers = [registry]
  new Counter({ name: 'calls_total', help: 'Calls', labelNames: ['agent'], registers }).inc({ agent: 'a' }, 2)
  new Gauge({ name: 'waiting', help: 'Waiting', registers }).set(7)
  const metrics = await exported(registry)
  expect(metrics.get('calls_total')).toMatchObject({
    descriptor: { description: 'Calls' },
    dataPointType: DataPointType.SUM,
    isMonotonic: true,
    dataPoints: [{ attributes: { agent: 'a' }, value: 2 }],
  })
  expect(metrics.get('waiting')).toMatchObject({
    dataPointType: DataPointType.GAUGE,
    dataPoints: [{ attributes: {}, value: 7 }],
  })
})

test('a bucket of an exported histogram does not include the smaller ones', async () => {
  const registry = new Registry()
  const histogram = new Histogram({ name: 'took', help: '-', buckets: [1, 5], registers: [registry] })
  for (const seconds of [0.5, 0.5, 3, 10]) histogram.observe(seconds)
  expect((await exported(registry)).get('took')?.dataPoints).toMatchObject([
    { value: { buckets: { boundaries: [1, 5], counts: [2, 1, 1] }, sum: 14, count: 4 } },
  ])
})

test('a summary is exported as two counters', async () => {
  const registry = new Registry()
  const summary = new Summary({ name: 'size', help: '-', percentiles: [], registers: [registry] })
  summary.observe(3)
  summary.observe(4)
  const metrics = await exported(registry)
  expect(metrics.get('size_sum')?.dataPoints).toMatchObject([{ value: 7 }])
  expect(metrics.get('size_count')?.dataPoints).toMatchObject([{ value: 2 }])
})

test('series of several agents of a process are joined, and those of the process are exported once', async () => {
  const registries = ['a', 'b'].map((agent) => {
    const registry = new Registry()
    const registers = [registry]
    new Gauge({ name: 'process_bytes', help: '-', registers }).set(1)
    new Counter({ name: 'tasks_total', help: '-', labelNames: ['agent'], registers }).inc({ agent })
    return registry
  })
  const metrics = await exported(...registries)
  expect(metrics.get('process_bytes')?.dataPoints).toHaveLength(1)
  expect(metrics.get('tasks_total')?.dataPoints).toMatchObject([
    { attributes: { agent: 'a' } },
    { attributes: { agent: 'b' } },
  ])
})
