import { type HrTime, ValueType } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  type CollectionResult,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import type { MetricObjectWithValues, MetricValue, Registry } from 'prom-client'

type Series = MetricObjectWithValues<MetricValue<string>>
type Labels = Record<string, string | number | undefined>

/** A value of a histogram or a summary names the series that it belongs to. */
interface NamedValue {
  value: number
  labels: Labels
  metricName?: string
}

/** Exports what `GET /metrics` shows, so that nothing is counted twice. */
export class RegistryProducer implements MetricProducer {
  readonly #resource: Resource
  readonly #registries: () => Iterable<Registry>
  readonly #startedAt = timeOf(Date.now())

  constructor(resource: Resource, registries: () => Iterable<Registry>) {
    this.#resource = resource
    this.#registries = registries
  }

  async collect(): Promise<CollectionResult> {
    const byName = new Map<string, MetricData>()
    const errors: unknown[] = []
    const times = { startTime: this.#startedAt, endTime: timeOf(Date.now()) }
    for (const registry of this.#registries()) {
      try {
        for (const series of await registry.getMetricsAsJSON())
          for (const data of dataOf(series, times)) merge(byName, data)
      } catch (error) {
        errors.push(error)
      }
    }
    const scopeMetrics = [{ scope: { name: 'parley' }, metrics: [...byName.values()] }]
    return { resourceMetrics: { resource: this.#resource, scopeMetrics }, errors }
  }
}

interface Times {
  startTime: HrTime
  endTime: HrTime
}

/** Several agents of one process have equal series of the process, of which the first is kept. */
function merge(byName: Map<string, MetricData>, data: MetricData): void {
  const known = byName.get(data.descriptor.name)
  if (known === undefined) byName.set(data.descriptor.name, data)
  else if (known.dataPointType === data.dataPointType) {
    const keys = new Set(known.dataPoints.map(({ attributes }) => JSON.stringify(attributes)))
    const added = data.dataPoints.filter(({ attributes }) => !keys.has(JSON.stringify(attributes)))
    Object.assign(known, { dataPoints: [...known.dataPoints, ...added] })
  }
}

function dataOf(series: Series, times: Times): MetricData[] {
  const { name, help, type } = series
  const values: NamedValue[] = series.values
  const kind = String(type)
  if (kind === 'histogram') return [histogramOf(name, help, values, times)]
  if (kind === 'gauge') return [gaugeOf(name, help, values, times)]
  if (kind === 'counter') return [sumOf(name, help, values, times)]
  // The series of a summary without quantiles.
  return ['_sum', '_count'].map((suffix) => {
    const of = values.filter(({ metricName }) => metricName === `${name}${suffix}`)
    return sumOf(`${name}${suffix}`, help, of, times)
  })
}

const descriptor = (name: string, description: string) => ({
  name,
  description,
  unit: '',
  valueType: ValueType.DOUBLE,
})

function sumOf(name: string, help: string, values: NamedValue[], times: Times): MetricData {
  return {
    descriptor: descriptor(name, help),
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPointType: DataPointType.SUM,
    isMonotonic: true,
    dataPoints: pointsOf(values, times),
  }
}

function gaugeOf(name: string, help: string, values: NamedValue[], times: Times): MetricData {
  return {
    descriptor: descriptor(name, help),
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPointType: DataPointType.GAUGE,
    dataPoints: pointsOf(values, times),
  }
}

function pointsOf(values: NamedValue[], times: Times): DataPoint<number>[] {
  return values
    .filter(({ value }) => Number.isFinite(value))
    .map(({ value, labels }) => ({ ...times, attributes: attributesOf(labels), value }))
}

function histogramOf(name: string, help: string, values: NamedValue[], times: Times): MetricData {
  const points = new Map<string, DataPoint<Histogram>>()
  for (const {
    value,
    labels: { le, ...labels },
    metricName,
  } of values) {
    const attributes = attributesOf(labels)
    const key = JSON.stringify(attributes)
    const empty = { ...times, attributes, value: { buckets: { boundaries: [], counts: [] }, count: 0 } }
    const point: DataPoint<Histogram> = points.get(key) ?? empty
    points.set(key, point)
    const { buckets } = point.value
    if (metricName === `${name}_sum`) point.value.sum = value
    else if (metricName === `${name}_count`) point.value.count = value
    else if (le !== undefined) {
      if (le !== '+Inf') buckets.boundaries.push(Number(le))
      buckets.counts.push(value)
    }
  }
  // Buckets of Prometheus include the smaller ones.
  for (const { value } of points.values())
    value.buckets.counts = value.buckets.counts.map((count, at, all) => count - (all[at - 1] ?? 0))
  return {
    descriptor: descriptor(name, help),
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
    dataPointType: DataPointType.HISTOGRAM,
    dataPoints: [...points.values()],
  }
}

function attributesOf(labels: Labels): Record<string, string | number> {
  const attributes: Record<string, string | number> = {}
  for (const [name, value] of Object.entries(labels)) if (value !== undefined) attributes[name] = value
  return attributes
}

const timeOf = (ms: number): HrTime => [Math.floor(ms / 1000), (ms % 1000) * 1_000_000]
