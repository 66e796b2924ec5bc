import { randomUUID } from 'node:crypto'
import { context, diag, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { BatchLogRecordProcessor, LoggerProvider } from '@opentelemetry/sdk-logs'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Registry } from 'prom-client'
import type { TelemetryOptions, TelemetrySource } from '../telemetry.ts'
import { useTracing } from '../tracing.ts'
import { logLineExporter } from './logs.ts'
import { RegistryProducer } from './metrics.ts'
import { OtlpTracing } from './spans.ts'

/** How long the last export may take when the process stops. */
const [exportTimeoutMs, stopMs] = [10_000, 3000]
/** The length of an attribute. */
const attributeMaxChars = 1024

export interface StartedOtlp extends AsyncDisposable {
  logLine?: (line: string) => void
}

/** Starts the exporters of OpenTelemetry. @param registries returns the registries with the metrics to export */
export function startOtlp(
  options: TelemetryOptions,
  source: TelemetrySource,
  registries: () => Iterable<Registry>,
): StartedOtlp {
  const resource = resourceFromAttributes({
    'service.name': options.serviceName ?? source.name,
    'service.namespace': 'parley',
    'service.version': source.version,
    'service.instance.id': randomUUID(),
    'process.pid': process.pid,
    ...options.resource,
  })
  const { traces, metrics, logs } = options.urls
  const to = (url: string) => ({ url, headers: options.headers, timeoutMillis: exportTimeoutMs })
  const providers: { shutdown: () => Promise<void> }[] = [
    ...(traces === undefined ? [] : [startTraces(options, resource, new OTLPTraceExporter(to(traces)))]),
    ...(metrics === undefined
      ? []
      : [startMetrics(options, resource, new OTLPMetricExporter(to(metrics)), registries)]),
  ]
  const logging = logs === undefined ? undefined : startLogs(resource, new OTLPLogExporter(to(logs)))
  if (logging !== undefined) providers.push(logging.provider)
  return {
    ...(logging !== undefined && { logLine: logging.logLine }),
    [Symbol.asyncDispose]: async () => {
      useTracing(undefined)
      // A collector that does not answer must not delay the end of the process.
      const limit = new Promise<void>((resolve) => setTimeout(resolve, stopMs).unref())
      await Promise.race([Promise.allSettled(providers.map((provider) => provider.shutdown())), limit])
      trace.disable()
      context.disable()
      propagation.disable()
      diag.disable()
    },
  }
}

/** The provider is also that of the API, so that the spans of libraries in a handler are part of its trace. */
function startTraces(options: TelemetryOptions, resource: Resource, exporter: OTLPTraceExporter) {
  const provider = new TracerProvider({
    resource,
    sampler: samplerOf(options),
    spanLimits: { attributeValueLengthLimit: attributeMaxChars },
    spanProcessors: [
      new BatchSpanProcessor({ exporter, scheduledDelayMillis: options.spansEveryMs, maxQueueSize: 8192 }),
    ],
  })
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(provider)
  const followsParent = options.sampler.startsWith('parentbased_')
  useTracing(new OtlpTracing(provider.getTracer('parley'), followsParent))
  return provider
}

function samplerOf({ sampler, samplerRatio }: Pick<TelemetryOptions, 'sampler' | 'samplerRatio'>): Sampler {
  const root = rootSampler(sampler.replace('parentbased_', ''), samplerRatio)
  return sampler.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root
}

function rootSampler(name: string, ratio: number): Sampler {
  if (name === 'always_off') return new AlwaysOffSampler()
  return name === 'always_on' ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(ratio)
}

function startMetrics(
  { metricsEveryMs }: TelemetryOptions,
  resource: Resource,
  exporter: OTLPMetricExporter,
  registries: () => Iterable<Registry>,
) {
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: metricsEveryMs,
    exportTimeoutMillis: Math.min(exportTimeoutMs, metricsEveryMs),
    metricProducers: [new RegistryProducer(resource, registries)],
  })
  return new MeterProvider({ resource, readers: [reader] })
}

function startLogs(resource: Resource, exporter: OTLPLogExporter) {
  const provider = new LoggerProvider({ resource, processors: [new BatchLogRecordProcessor({ exporter })] })
  return { provider, logLine: logLineExporter(provider.getLogger('parley')) }
}
