import { expect, test } from 'vitest'
import { readSettings } from './settings.ts'
import { telemetryOptions, telemetrySettings } from './telemetry-settings.ts'

const optionsOf = (env: NodeJS.ProcessEnv) => telemetryOptions(readSettings(telemetrySettings, env))
const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' }

test('without an endpoint, nothing is exported', () => {
  expect(optionsOf({ OTEL_TRACES_SAMPLER: 'always_on', OTEL_SERVICE_NAME: 'x' })).toBeUndefined()
  expect(optionsOf({ ...collector, OTEL_SDK_DISABLED: 'true' })).toBeUndefined()
})

test('an endpoint receives all three signals, and each signal may have another one or none', () => {
  expect(optionsOf(collector)?.urls).toEqual({
    traces: 'http://collector:4318/v1/traces',
    metrics: 'http://collector:4318/v1/metrics',
    logs: 'http://collector:4318/v1/logs',
  })
  const own = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/in',
    OTEL_LOGS_EXPORTER: 'none',
  }
  expect(optionsOf({ ...collector, ...own })?.urls).toEqual({
    traces: 'https://traces.example/in',
    metrics: 'http://collector:4318/v1/metrics',
    logs: undefined,
  })
})

test('headers and attributes are lists of names and percent-encoded values', () => {
  const options = optionsOf({
    ...collector,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a=b, x-tenant=7',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=staging',
  })
  expect(options?.headers).toEqual({ authorization: 'Bearer a=b', 'x-tenant': '7' })
  expect(options?.resource).toEqual({ 'deployment.environment.name': 'staging' })
})

test.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', 'must be an http or https URL'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'Bearer hidden', 'must be a list of headers like name=value,name=value'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%zz', 'must be a list of headers like name=value,name=value'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', 'must be http/protobuf, the supported protocol'],
  ['OTEL_TRACES_SAMPLER_ARG', '10%', 'must be a number from 0 to 1'],
  ['OTEL_TRACES_SAMPLER', 'jaeger_remote', 'must be one of always_on'],
  ['OTEL_METRIC_EXPORT_INTERVAL', '0', 'must be a whole number of milliseconds, at least 1'],
])('%s=%s is refused with a sentence that does not contain the value', (name, value, sentence) => {
  expect(() => optionsOf({ ...collector, [name]: value })).toThrow(`${name} ${sentence}`)
  expect(() => optionsOf({ ...collector, [name]: value })).not.toThrow(value)
})
