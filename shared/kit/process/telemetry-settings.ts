import { z } from 'zod'
import type { TelemetryOptions } from '../telemetry/telemetry.ts'
import type { Setting, Values } from './settings.ts'

const text = z.string().trim()
const url = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).optional()
const endpoint = (signal: string): Setting & { schema: typeof url } => ({
  schema: url,
  example: '',
  meaning: `address for ${signal}, if it is not OTEL_EXPORTER_OTLP_ENDPOINT`,
  toAgents: true,
})
const exporter = (signal: string) =>
  ({
    schema: z.enum(['otlp', 'none'], { error: 'must be otlp or none' }).default('otlp'),
    example: '',
    meaning: `none: ${signal} are not exported`,
    toAgents: true,
  }) as const satisfies Setting
const milliseconds = (fallback: number) =>
  text
    .regex(/^[1-9]\d{0,8}$/, 'must be a whole number of milliseconds, at least 1')
    .transform(Number)
    .default(fallback)
/** Pairs as in W3C Baggage: `name=value`, comma-separated, with percent-encoded values. */
const pairs = (what: string) =>
  text
    .transform((value, context) => {
      const read: Record<string, string> = {}
      for (const pair of value.split(',').filter((item) => item.trim() !== '')) {
        const at = pair.indexOf('=')
        const name = pair.slice(0, Math.max(at, 0)).trim()
        const decoded = decode(pair.slice(at + 1).trim())
        if (!/^[\w.\-/]+$/.test(name) || decoded === undefined) {
          context.addIssue({
            code: 'custom',
            message: `must be a list of ${what} like name=value,name=value`,
          })
          return z.NEVER
        }
        read[name] = decoded
      }
      return read
    })
    .optional()

function decode(value: string): string | undefined {
  try {
    return decodeURIComponent(value)
  } catch {
    return undefined
  }
}

const samplers = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const

/** Settings of OpenTelemetry, by their standard names (spec/operations.md#opentelemetry). */
export const telemetrySettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: {
    schema: url,
    example: '',
    meaning:
      'OpenTelemetry collector (OTLP over HTTP, for example http://127.0.0.1:4318) that receives traces, metrics and logs; empty: nothing is exported',
    toAgents: true,
  },
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint('traces, with its path (…/v1/traces)'),
  OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: endpoint('metrics, with its path (…/v1/metrics)'),
  OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: endpoint('logs, with its path (…/v1/logs)'),
  OTEL_EXPORTER_OTLP_HEADERS: {
    schema: pairs('headers'),
    example: '',
    meaning:
      'headers of requests to the collector, for example authorization=Bearer%20…, comma-separated; supervised agents receive them too',
    secret: true,
    toAgents: true,
  },
  OTEL_EXPORTER_OTLP_PROTOCOL: {
    schema: z.literal('http/protobuf', { error: 'must be http/protobuf, the supported protocol' }).optional(),
    example: '',
    meaning: 'protocol of the collector; only http/protobuf is supported',
  },
  OTEL_TRACES_EXPORTER: exporter('traces'),
  OTEL_METRICS_EXPORTER: exporter('metrics'),
  OTEL_LOGS_EXPORTER: exporter('logs'),
  OTEL_TRACES_SAMPLER: {
    schema: z
      .enum(samplers, { error: `must be one of ${samplers.join(', ')}` })
      .default('parentbased_always_on'),
    example: '',
    meaning:
      'which traces are exported: always_on, always_off, traceidratio, or parentbased_… of these, which follow the decision of the caller (default parentbased_always_on)',
    toAgents: true,
  },
  OTEL_TRACES_SAMPLER_ARG: {
    schema: text
      .regex(/^(0(\.\d{1,9})?|1(\.0{1,9})?)$/, 'must be a number from 0 to 1')
      .transform(Number)
      .optional(),
    example: '',
    meaning: 'the part of the traces that traceidratio exports, for example 0.1 (default 1)',
    toAgents: true,
  },
  OTEL_SERVICE_NAME: {
    schema: text.max(255).optional(),
    example: '',
    meaning: 'name of this server in traces (default: gateway, relay, or the name of the agent)',
  },
  OTEL_RESOURCE_ATTRIBUTES: {
    schema: pairs('attributes'),
    example: '',
    meaning: 'attributes of all exported data, for example deployment.environment.name=staging',
    toAgents: true,
  },
  OTEL_BSP_SCHEDULE_DELAY: {
    schema: milliseconds(5000),
    example: '5000',
    meaning: 'interval in which finished spans are exported, in milliseconds',
    toAgents: true,
  },
  OTEL_METRIC_EXPORT_INTERVAL: {
    schema: milliseconds(60_000),
    example: '60000',
    meaning: 'interval in which metrics are exported, in milliseconds',
    toAgents: true,
  },
  OTEL_SDK_DISABLED: {
    schema: z
      .enum(['true', 'false'], { error: 'must be true or false' })
      .transform((value) => value === 'true')
      .optional(),
    example: '',
    meaning: 'true: nothing is exported, whatever the other settings are',
    toAgents: true,
  },
} as const satisfies Record<string, Setting>

/** Returns undefined if nothing is exported. The headers are secret. */
export function telemetryOptions(values: Values<typeof telemetrySettings>): TelemetryOptions | undefined {
  if (values.OTEL_SDK_DISABLED === true) return undefined
  const base = values.OTEL_EXPORTER_OTLP_ENDPOINT?.replace(/\/+$/, '')
  const urlOf = (own: string | undefined, path: string, target: 'otlp' | 'none') =>
    target === 'none' ? undefined : (own ?? (base === undefined ? undefined : `${base}/v1/${path}`))
  const urls = {
    traces: urlOf(values.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, 'traces', values.OTEL_TRACES_EXPORTER),
    metrics: urlOf(values.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, 'metrics', values.OTEL_METRICS_EXPORTER),
    logs: urlOf(values.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT, 'logs', values.OTEL_LOGS_EXPORTER),
  }
  if (Object.values(urls).every((one) => one === undefined)) return undefined
  return {
    urls,
    headers: values.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    sampler: values.OTEL_TRACES_SAMPLER,
    samplerRatio: values.OTEL_TRACES_SAMPLER_ARG ?? 1,
    serviceName: values.OTEL_SERVICE_NAME,
    resource: values.OTEL_RESOURCE_ATTRIBUTES ?? {},
    spansEveryMs: values.OTEL_BSP_SCHEDULE_DELAY,
    metricsEveryMs: values.OTEL_METRIC_EXPORT_INTERVAL,
  }
}
