import { expect, test } from 'vitest'
import { agentEnvironment } from './environment.ts'
import { neededDestinations } from './start-supervisor.ts'

const none = { env: [], required: [], secret: [], meaning: {} }

test('payment settings are passed to every agent and other secrets to none', () => {
  const payments = {
    PAYMENT_FACILITATOR_URL: 'https://facilitator.example',
    PAYMENT_RPC_URL: 'https://node.example',
    PAYMENT_SANDBOX: 'no',
    PAYMENT_SIGNER_KEY_FILE: '/keys/gas',
  }
  const ours = { ...payments, SERVICE_GATEWAY_DID_SEED: 'secret', OAUTH_CLIENT_SECRET: 'secret' }
  expect(agentEnvironment(ours, none as never, { PORT: '1' })).toEqual({ ...payments, PORT: '1' })
})

test('agents export to the collector of the gateway, each with its own service name', () => {
  const collector = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20key',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
  }
  const ours = { ...collector, OTEL_SERVICE_NAME: 'our gateway' }
  expect(agentEnvironment(ours, none as never, {})).toEqual(collector)
})

test('agents with an egress list may connect to the collector', () => {
  const environment = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/v1/traces',
  }
  const addresses = { local: 'http://127.0.0.1:7400' }
  const options = { environment, addresses, config: { oauth: {} }, provider: undefined }
  expect(neededDestinations(options as never)).toEqual([
    '127.0.0.1:7400',
    'collector:4318',
    'traces.example:443',
  ])
})
