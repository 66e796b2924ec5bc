import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { version } from '@parley/kit/process/version'
import { startTelemetry } from '@parley/kit/telemetry/telemetry'
import { OtlpReceiver } from '@parley/tools/testing/otlp-receiver'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import { saying } from './testing.ts'

const open = new AsyncDisposableStack()
let folder: string
let gateway: GatewayApp
let collector: OtlpReceiver
let webhooks: WebhookReceiver
let bearer: string

/** `coordinator` calls `worker`, which works on one task at a time and keeps the task "hold" until a file exists. */
const handlers = (released: string) => ({
  coordinator: `async handle({ text, agents, usage }) {
    usage({ model: 'test', inputTokens: 3, outputTokens: 5 })
    return (await agents.call('worker', text)).text
  }`,
  worker: `concurrency: 1, async handle({ text }) {
    while (text === 'hold' && !existsSync(${JSON.stringify(released)}))
      await new Promise((resolve) => setTimeout(resolve, 20))
    return text
  }`,
})

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-traces-'))
  open.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  collector = open.use(await OtlpReceiver.start())
  webhooks = open.use(await WebhookReceiver.start())
  const defineAgent = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
  for (const [name, handle] of Object.entries(handlers(path.join(folder, 'released')))) {
    await mkdir(path.join(folder, 'agents', name), { recursive: true })
    const skill = { id: 'do', name, description: `The ${name} of texts`, tags: [name] }
    await writeFile(
      path.join(folder, 'agents', name, 'agent.js'),
      `import { existsSync } from 'node:fs'
       import { defineAgent } from ${JSON.stringify(defineAgent)}
       export default defineAgent({
         name: '${name}', description: 'The ${name} of texts', skills: [${JSON.stringify(skill)}], ${handle}
       })`,
    )
  }
  const settings = gatewayConfig({
    PATH: process.env['PATH'],
    HOME: folder,
    PORT: '0',
    LOG_LEVEL: 'info',
    DATA_DIR: path.join(folder, 'data'),
    AGENT_ISOLATION: 'none',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-api-key=the-secret',
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_METRIC_EXPORT_INTERVAL: '500',
  })
  const { telemetry } = settings.secrets
  // The gateway of this test writes no log, but its agents do.
  open.use(await startTelemetry(telemetry, { name: 'gateway', version }))
  const log = makeLog({ level: 'silent', name: 'test' })
  gateway = open.use(await startGatewayApp({ settings, log, agentsDir: path.join(folder, 'agents') }))
  await gateway.supervisor?.settled()
  bearer = await token()
}, 60_000)

afterAll(() => open.disposeAsync())

async function token(): Promise<string> {
  const file = path.join(folder, 'data', 'dev-client.json')
  const { token_url, ...client } = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>
  const body = new URLSearchParams({ ...client, grant_type: 'client_credentials' })
  const response = await fetch(token_url ?? '', { method: 'POST', body })
  return ((await response.json()) as { access_token: string }).access_token
}

/** Returns the trace context of a client, and the id of its trace. */
function clientTrace() {
  const traceId = randomBytes(16).toString('hex')
  return { traceId, traceparent: `00-${traceId}-${randomBytes(8).toString('hex')}-01` }
}

function post(at: string, method: string, params: object, headers: Record<string, string> = {}) {
  return fetch(new URL(at, gateway.addresses.public), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}`, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params }),
  })
}

const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId)

/** Waits until the trace has as many spans of a name, and returns its spans and their services by name. */
async function traceWith(traceId: string, name: string, count: number) {
  const has = () => spansOf(traceId).filter((span) => span.name === name).length >= count
  await collector.until(() => (has() ? true : undefined))
  return spansOf(traceId)
}

/** The names of a span and its ancestors, from the span outwards. */
function pathOf(traceId: string, start: { spanId: string } | undefined): string[] {
  const spans = new Map(spansOf(traceId).map((span) => [span.spanId, span]))
  const names: string[] = []
  for (let span = spans.get(start?.spanId ?? ''); span !== undefined; span = spans.get(span.parentSpanId))
    names.push(`${span.service} ${span.name}`)
  return names
}

const toCoordinator = ['coordinator message/send', 'gateway forward', 'gateway message/send']
const toWorker = [
  'worker message/send',
  'gateway forward',
  'gateway POST /agents/:slug',
  'coordinator invoke_agent',
  'coordinator handle',
  'coordinator run task',
  ...toCoordinator,
]

test('a message, the agent that it reaches, the agent that this one calls and its webhook are one trace', async () => {
  const { traceId, traceparent } = clientTrace()
  const configuration = { pushNotificationConfig: { id: randomUUID(), url: webhooks.url } }
  const params = saying('ask the coordinator about texts: coordinator', {}, configuration)
  const answer = await post('/', 'message/send', params, { traceparent, tracestate: 'vendor=1' })
  expect([answer.status, answer.headers.get('x-agent')]).toEqual([200, 'coordinator'])
  expect(answer.headers.get('traceresponse')).toContain(traceId)
  const spans = await traceWith(traceId, 'deliver webhook', 3)
  const last = (service: string, name: string) =>
    spans.findLast((span) => span.service === service && span.name === name)
  expect(pathOf(traceId, last('worker', 'run task'))).toEqual(['worker run task', ...toWorker])
  expect(pathOf(traceId, last('worker', 'wait in queue'))).toEqual(['worker wait in queue', ...toWorker])
  expect(pathOf(traceId, last('coordinator', 'deliver webhook'))).toEqual([
    'coordinator deliver webhook',
    ...toCoordinator,
  ])
  expect(pathOf(traceId, last('gateway', 'negotiate'))).toEqual(['gateway negotiate', 'gateway message/send'])
  // Only the first span of the gateway has a parent outside of the trace, which is that of the client.
  const ids = new Set(spans.map(({ spanId }) => spanId))
  expect(spans.filter(({ parentSpanId }) => !ids.has(parentSpanId))).toMatchObject([
    {
      service: 'gateway',
      name: 'message/send',
      parentSpanId: traceparent.slice(36, 52),
      traceState: 'vendor=1',
    },
  ])
  expect(last('coordinator', 'handle')?.attributes).toEqual({
    'gen_ai.usage.input_tokens': 3,
    'gen_ai.usage.output_tokens': 5,
  })
  expect(last('coordinator', 'run task')?.attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'coordinator',
    'parley.attempt': 1,
    'parley.task.state': 'completed',
  })
  expect(last('gateway', 'negotiate')?.attributes).toMatchObject({
    'parley.negotiation.id': answer.headers.get('x-negotiation-id'),
    'parley.agent.chosen': 'coordinator',
  })
  expect(webhooks.posts.at(-1)?.headers['traceparent']).toContain(traceId)
  expect(webhooks.posts.at(-1)?.headers['tracestate']).toBe('vendor=1')
})

test('a task that waited while its agent was killed continues its trace after the restart', async () => {
  const held = clientTrace()
  await post('/agents/worker/', 'message/send', saying('hold'), held)
  const { traceId, traceparent } = clientTrace()
  await post('/agents/worker/', 'message/send', saying('next'), { traceparent })
  await traceWith(traceId, 'message/send', 1)
  await traceWith(held.traceId, 'wait in queue', 1)
  // The process ids are sorted by the names of the agents.
  const [, pid = 0] = gateway.supervisor?.pids() ?? []
  process.kill(pid, 'SIGKILL')
  // The task is released only now, because the spans that the old process ended could be lost.
  await writeFile(path.join(folder, 'released'), '')
  const [run] = (await traceWith(traceId, 'run task', 1)).filter(({ name }) => name === 'run task')
  expect(pathOf(traceId, run)).toEqual([
    'worker run task',
    'worker message/send',
    'gateway forward',
    'gateway POST /agents/:slug',
  ])
  const again = (await traceWith(held.traceId, 'run task', 1)).find(({ name }) => name === 'run task')
  expect(again?.attributes).toMatchObject({ 'parley.attempt': 2, 'parley.task.state': 'completed' })
})

test('the trace in _meta of an MCP request is that of the tasks which it causes', async () => {
  const { traceId, traceparent } = clientTrace()
  const name = 'worker__do'
  const params = {
    name,
    arguments: { text: 'hello' },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
      traceparent,
    },
  }
  const answer = await post('/mcp', 'tools/call', params, {
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': name,
    traceparent: clientTrace().traceparent,
  })
  expect(await answer.text()).toContain('hello')
  await traceWith(traceId, 'tools/call', 1)
  const [run] = (await traceWith(traceId, 'run task', 1)).filter(({ name: its }) => its === 'run task')
  expect(pathOf(traceId, run)).toEqual([
    'worker run task',
    'worker message/send',
    'gateway forward',
    'gateway POST /agents/:slug',
    'gateway tools/call',
  ])
})

test('log lines about a task are exported with its trace and without its texts', async () => {
  const { traceId, traceparent } = clientTrace()
  await post('/agents/worker/', 'message/send', saying('the text of alice'), { traceparent })
  const ended = await collector.until(() =>
    collector.logs.find((log) => log.traceId === traceId && log.body === 'task ended'),
  )
  expect(ended).toMatchObject({
    service: 'worker',
    severity: 'INFO',
    attributes: {
      state: 'completed',
      starts: 1,
      duration_ms: expect.any(Number),
      queued_ms: expect.any(Number),
    },
  })
  expect(collector.logs.filter((log) => log.traceId === traceId).map(({ body }) => body)).toEqual([
    'task accepted',
    'task ended',
  ])
  await traceWith(traceId, 'run task', 1)
  const exported = JSON.stringify([collector.logs, collector.spans.map(({ attributes }) => attributes)])
  expect(exported).not.toContain('the text of alice')
  expect(exported).not.toContain(bearer)
})

test('the series of GET /metrics are exported by the gateway and its agents', async () => {
  const servicesOf = (name: string) => collector.metrics.get(name) ?? new Set()
  const agents = ['coordinator', 'worker']
  // Other tests of this process may have left the registry of an agent, which the gateway of this test exports.
  const completed = () => servicesOf('agent_tasks_completed_total')
  await collector.until(() => agents.every((agent) => completed().has(agent)) || undefined)
  await collector.until(() => servicesOf('http_requests_total').has('gateway') || undefined)
  expect(servicesOf('http_requests_total')).toEqual(new Set(['gateway', ...agents]))
  expect(collector.metrics.has('http_request_duration_seconds')).toBe(true)
  expect(collector.headers['x-api-key']).toBe('the-secret')
})

test('a caller whose trace is not recorded receives the same trace, and nothing is exported for it', async () => {
  const { traceId, traceparent } = clientTrace()
  const answer = await post('/agents/worker/', 'message/send', saying('hello'), {
    traceparent: `${traceparent.slice(0, -2)}00`,
  })
  expect(answer.headers.get('traceresponse')).toBe(`${traceparent.slice(0, -2)}00`)
  // Logs are exported later than spans.
  await collector.until(() => collector.logs.find((log) => log.traceId === traceId))
  expect(spansOf(traceId)).toEqual([])
})

test('a malformed traceparent begins a new trace', async () => {
  const answer = await post('/agents/worker/', 'message/send', saying('hello'), {
    traceparent: '00-00000000000000000000000000000000-0000000000000000-01',
  })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('traceresponse')).toMatch(/^00-(?!0{32})[\da-f]{32}-[\da-f]{16}-01$/)
})
