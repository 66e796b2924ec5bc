import type { Registry } from 'prom-client'

/** Where and how a process exports traces, metrics and logs by OTLP over HTTP. */
export interface TelemetryOptions {
  /** Undefined for a signal that is not exported. */
  urls: { traces: string | undefined; metrics: string | undefined; logs: string | undefined }
  /** Headers of each request to the collector. They are secret. */
  headers: Record<string, string>
  sampler: `${'parentbased_' | ''}${'always_on' | 'always_off' | 'traceidratio'}`
  /** The part of the traces that `traceidratio` exports, from 0 to 1. */
  samplerRatio: number
  /** Default: the name of the process. */
  serviceName: string | undefined
  /** Attributes of all exported data. */
  resource: Record<string, string>
  spansEveryMs: number
  metricsEveryMs: number
}

/** The process that exports. */
export interface TelemetrySource {
  /** `gateway`, `relay` or the name of the agent. */
  name: string
  version: string
}

/** Receives what the process exports besides traces. */
interface Exports {
  metrics: Set<Registry>
  /** Receives each log line as JSON. */
  logLine?: ((line: string) => void) | undefined
}

const exports: Exports = { metrics: new Set() }

/**
 * Starts to export what the settings name. Without settings, no module of OpenTelemetry is loaded. Call it before servers are
 * created, because they do not trace their requests otherwise.
 */
export async function startTelemetry(
  options: TelemetryOptions | undefined,
  source: TelemetrySource,
): Promise<AsyncDisposable> {
  if (options === undefined) return { [Symbol.asyncDispose]: async () => {} }
  const { startOtlp } = await import('./otlp/otlp.ts')
  const started = startOtlp(options, source, () => exports.metrics)
  exports.logLine = started.logLine
  return {
    [Symbol.asyncDispose]: async () => {
      delete exports.logLine
      await started[Symbol.asyncDispose]()
    },
  }
}

/** Exports the metrics of a registry, if metrics are exported, until the result is disposed. */
export function exportMetrics(registry: Registry): Disposable {
  exports.metrics.add(registry)
  return { [Symbol.dispose]: () => void exports.metrics.delete(registry) }
}

/** Passes on a log line, if logs are exported. */
export function exportLogLine(line: string): string {
  exports.logLine?.(line)
  return line
}
