import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({
    name: 'Word Counter',
    author: 'Ann@Example.org',
    handle: ({ text, usage }) => {
      for (let i = 0; i < 60; i += 1)
        usage({ model: text === 'many' ? `model-${i}` : 'm"1\n', inputTokens: 3, outputTokens: 2 })
      usage({ model: 'odd', inputTokens: Number.NaN, outputTokens: -5 })
      return text
    },
    skills: [
      {
        id: 'count',
        name: 'Count words',
        description: 'Counts the words of a text',
        tags: ['text'],
        documentation: '# Count',
        performance: { avgProcessingTimeMs: 100 },
        allowedTools: ['counter'],
        examples: ['How many words has this sentence?'],
        input: z.object({ separator: z.string().default(' ') }),
      },
      {
        id: 'draw',
        name: 'Draw',
        description: 'Draws',
        outputModes: ['image/png'],
        inputModes: ['text/plain', 'application/json'],
      },
    ],
  })
})
afterAll(() => agent[Symbol.asyncDispose]())

/** The JSON Schema of the skill `count`. */
const inputSchema = { type: 'object', properties: { separator: { type: 'string', default: ' ' } } }

const get = (path: string, headers: Record<string, string> = {}) =>
  raw(agent, { method: 'GET', path, headers })

test('GET /.well-known/agent.json returns the public card in camelCase', async () => {
  const { status, json } = await get('/.well-known/agent.json')
  const skill = {
    version: '1.0.0',
    inputModes: ['text/plain'],
    outputModes: ['text/plain'],
    documentationPath: '/agent/skills/count/documentation',
  }
  const id = agent.did.split(':').at(-1)
  expect(status).toBe(200)
  expect(agent.did).toMatch(/^did:parley:ann_at_example_org:agent:[\da-f-]{36}$/)
  expect(json).toMatchObject({
    id,
    did: agent.did,
    name: 'Word Counter',
    url: agent.url,
    protocolVersion: '1.0.0',
    kind: 'agent',
    capabilities: {
      streaming: true,
      stateTransitionHistory: true,
      extensions: [
        {
          uri: agent.did,
          required: false,
          params: { author: 'Ann@Example.org', agent_name: 'Word Counter', agent_id: id },
        },
      ],
    },
    skills: [{ id: 'count', name: 'Count words', tags: ['text'], inputSchema, ...skill }, { id: 'draw' }],
    defaultInputModes: ['text/plain', 'application/json'],
    defaultOutputModes: ['text/plain', 'image/png'],
    securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
  })
})

test('the card has an ETag and Cache-Control, and a matching If-None-Match receives 304', async () => {
  const card = await get('/.well-known/agent.json')
  const etag = card.headers.get('etag') as string
  expect(card.headers.get('cache-control')).toContain('max-age')
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await get('/.well-known/agent.json', { 'if-none-match': known })
    expect([known, again.status, again.text, again.headers.get('etag')]).toEqual([known, 304, '', etag])
  }
  expect((await get('/.well-known/agent.json', { 'if-none-match': '"other"' })).status).toBe(200)
})

test('GET /agent/skills returns all skills with their schemas, one by id or name, or its documentation; a missing skill is -32030', async () => {
  const list = (await get('/agent/skills')).json
  expect(list).toMatchObject({
    total: 2,
    skills: [
      {
        id: 'count',
        input_modes: ['text/plain'],
        output_modes: ['text/plain'],
        examples: ['How many words has this sentence?'],
        input_schema: inputSchema,
        documentation_path: '/agent/skills/count/documentation',
      },
      { id: 'draw' },
    ],
  })
  const whole = {
    performance: { avg_processing_time_ms: 100 },
    allowed_tools: ['counter'],
    has_documentation: true,
    assessment: { keywords: [], specializations: [], anti_patterns: [] },
    capabilities_detail: {},
  }
  for (const path of ['/agent/skills/count', '/agent/skills/Count%20words'])
    expect((await get(path)).json).toEqual({ ...list.skills[0], ...whole })
  const documentation = await get('/agent/skills/count/documentation')
  expect([documentation.text, documentation.headers.get('content-type')]).toEqual([
    '# Count',
    'text/markdown; charset=utf-8',
  ])
  for (const path of [
    '/agent/skills/none',
    '/agent/skills/none/documentation',
    '/agent/skills/draw/documentation',
    '/agent/skills/__proto__',
    '/agent/skills/..%2f..%2fetc',
  ]) {
    const { status, json } = await get(path)
    expect([path, status, json]).toEqual([
      path,
      404,
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32030, message: 'Skill not found', data: expect.any(Object) },
      },
    ])
  }
})

test('GET /health returns 200 with both shapes, and 503 when a mandatory dependency fails; oauth is only reported', async () => {
  const { status, headers, json } = await get('/health')
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(json).toEqual({
    version: expect.any(String),
    health: 'healthy',
    status: 'ok',
    ready: true,
    uptime_seconds: expect.any(Number),
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$/),
    runtime: {
      storage_backend: 'sqlite',
      scheduler_backend: 'in-process',
      task_manager_running: true,
      strict_ready: true,
    },
    application: { penguin_id: agent.did.split(':').at(-1), agent_did: agent.did },
    system: {
      python_version: 'n/a',
      node_version: process.versions.node,
      platform: process.platform,
      environment: 'development',
    },
    checks: { storage: 'ok', scheduler: 'ok', bus: 'ok', grpc: 'ok', extensions: 'ok', oauth: 'ok' },
  })
  expect(Number.isInteger(json.uptime_seconds)).toBe(true)
  agent.identityProvider.fault = 'status 500'
  const without = await get('/health')
  agent.identityProvider.fault = 'none'
  expect([without.status, without.json.checks.oauth]).toEqual([200, expect.stringMatching(/^error: /)])
  await expect.poll(async () => (await get('/health')).json.checks.oauth).toBe('ok')
})

test('GET /health returns 503 for a closed store, with an error that contains no driver message', async () => {
  await using broken = await testAgent({ handle: () => 'x' })
  await broken.app.services.store[Symbol.asyncDispose]()
  const { status, json } = await raw(broken, { method: 'GET', path: '/health' })
  expect(status).toBe(503)
  expect(json).toMatchObject({
    status: 'degraded',
    health: 'degraded',
    ready: false,
    runtime: { strict_ready: false },
    checks: { storage: 'error: unavailable', bus: 'ok' },
  })
})

test('GET /metrics returns every series of spec/operations.md#metrics with bounded labels', async () => {
  const alice = agent.caller('alice')
  await alice.sendAndWait('one')
  await alice.sendAndWait('many')
  for (let i = 0; i < 5; i += 1) await get(`/nothing-${i}?token=secret`)
  await raw(agent, { token: alice.token, body: '{"jsonrpc":"2.0","id":1,"method":"invented"}' })
  const { status, headers, text } = await get('/metrics')
  expect([status, headers.get('content-type')]).toEqual([
    200,
    expect.stringMatching(/^text\/plain; version=0\.0\.4/),
  ])
  const id = agent.did.split(':').at(-1)
  for (const line of [
    'http_requests_total{method="POST",endpoint="/",status="200",rpc_method="message/send"}',
    'http_requests_total{method="GET",endpoint="none",status="404",rpc_method=""} 5',
    'http_request_duration_seconds_bucket{',
    'http_request_size_bytes_sum{',
    'http_response_size_bytes_count{',
    'http_requests_in_flight 1',
    `agent_tasks_active{agent_id="${id}",state="working"} 0`,
    `agent_tasks_completed_total{agent_id="${id}",state="completed"} 2`,
    `agent_llm_tokens_total{agent_id="${id}",direction="input",model="m\\"1\\n"} 180`,
    `agent_llm_tokens_total{agent_id="${id}",direction="output",model="other"}`,
  ])
    expect([line, text.includes(line)]).toEqual([line, true])
  expect(text).not.toContain('invented')
  expect(text).not.toContain('secret')
  expect(text).not.toContain('model="odd"')
  expect(new Set(text.match(/model="model-\d+"/g)).size).toBeLessThanOrEqual(50)
})

const weights = { skill_match: 0.5, io_compatibility: 0.2, performance: 0.1, load: 0.1, cost: 0.1 }
const negotiate = (body: object | string) =>
  raw(agent, {
    path: '/agent/negotiation',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

test('POST /agent/negotiation is public and answers as in spec/negotiation.md#response with at most 4 decimals', async () => {
  const { status, json } = await negotiate({ task_summary: 'Count the words of this text', weights })
  expect(status).toBe(200)
  expect(json).toMatchObject({
    can_handle: true,
    reasons: expect.any(Array),
    estimated_latency_ms: 100,
    queue_depth: 0,
    confidence: expect.any(Number),
    skill_matches: [{ skill_id: 'count', skill_name: 'Count words' }],
  })
  expect(json.score).toBeGreaterThan(0)
  expect(json.score).toBeLessThanOrEqual(1)
  expect(String(json.score)).toMatch(/^\d(\.\d{1,4})?$/)
  const camel = await negotiate({
    taskSummary: 'Count the words of this text',
    weights: { skillMatch: 0.5, ioCompatibility: 0.2, performance: 0.1, load: 0.1, cost: 0.1 },
  })
  expect(camel.json.score).toBe(json.score)
  expect(await agent.app.services.store.countByState()).not.toHaveProperty('submitted')
})

test('negotiation without weights uses the default weights, as the reasons state', async () => {
  const defaults = { skill_match: 0.55, io_compatibility: 0.2, performance: 0.15, load: 0.05, cost: 0.05 }
  const task_summary = 'Count the words of this text'
  const without = await negotiate({ task_summary })
  const given = await negotiate({ task_summary, weights: defaults })
  expect(without.status).toBe(200)
  expect(without.json.score).toBe(given.json.score)
  const note = expect.stringMatching(
    /^no weights given: the defaults apply \(skill_match 0\.55, .*cost 0\.05\)$/,
  )
  expect(without.json.reasons).toContainEqual(note)
  expect(given.json.reasons).not.toContainEqual(note)
  const refused = await negotiate({ task_summary, required_tools: ['hammer'] })
  expect(refused.json).toMatchObject({ can_handle: false, score: 0 })
  expect(refused.json.reasons).toContainEqual(note)
})

test('negotiation reads max_cost_amount as a decimal string even if it is a JSON number', async () => {
  const body = (amount: string) =>
    `{"task_summary": "Count words", "max_cost_amount": ${amount}, "weights": {"skill_match": 1}}`
  for (const amount of ['0', '1', '0.05', '1e-7', '2.5e21', '"0.05"'])
    expect([amount, (await negotiate(body(amount))).status]).toEqual([amount, 200])
})

test('negotiation normalizes the weights, treats missing weights as 0 and replaces all zeros with equal weights', async () => {
  const score = async (given: object) =>
    (await negotiate({ task_summary: 'Count words', weights: given })).json.score
  expect(await score({ load: 1 })).toBe(1)
  expect(await score({ skill_match: 0.2, cost: 0.2 })).toBe(await score({ skill_match: 1, cost: 1 }))
  expect(await score({})).toBe(
    await score({ skill_match: 1, io_compatibility: 1, performance: 1, load: 1, cost: 1 }),
  )
})

test.each<[string, object | string, number]>([
  ['weights as array', { task_summary: 'x', weights: [] }, -32602],
  ['a negative weight', { task_summary: 'x', weights: { load: -0.1 } }, -32602],
  ['a weight above 1', { task_summary: 'x', weights: { load: 1.1 } }, -32602],
  ['a text as weight', { task_summary: 'x', weights: { load: '1' } }, -32602],
  ['an endless weight', '{"task_summary":"x","weights":{"load":1e999}}', -32602],
  ['NaN', '{"task_summary":"x","weights":{"load":NaN}}', -32700],
  ['no task_summary', { weights }, -32602],
  ['an empty task_summary', { task_summary: '', weights }, -32602],
  ['min_score above 1', { task_summary: 'x', weights, min_score: 2 }, -32602],
  ['a fraction as latency', { task_summary: 'x', weights, max_latency_ms: 1.5 }, -32602],
  ['a negative price', { task_summary: 'x', weights, max_cost_amount: '-1' }, -32602],
  ['a negative number as price', { task_summary: 'x', weights, max_cost_amount: -1 }, -32602],
  ['a price too long to be one', { task_summary: 'x', weights, max_cost_amount: 1e-40 }, -32602],
  ['tools as a text', { task_summary: 'x', weights, required_tools: 'a' }, -32602],
  ['an empty body', '', -32700],
  ['__proto__', '{"task_summary":"x","weights":{"__proto__":{"load":1}}}', -32600],
])('negotiation with %s receives 400 with an envelope and a null id', async (_name, body, code) => {
  const { status, json } = await negotiate(body)
  expect([status, json]).toMatchObject([400, { jsonrpc: '2.0', id: null, error: { code } }])
})

test.each<[string, object, string]>([
  ['an input type that nobody reads', { input_mime_types: ['text/plain', 'audio/wav'] }, 'audio/wav'],
  ['no output type in common', { output_mime_types: ['audio/wav'] }, 'audio/wav'],
  ['a required tool that is missing', { required_tools: ['counter', 'saw'] }, 'saw'],
  ['a forbidden tool that is present', { forbidden_tools: ['counter'] }, 'counter'],
  ['an estimate above twice the latency', { max_latency_ms: 49 }, 'max_latency_ms'],
])(
  'a violated hard constraint (%s) results in score 0 and can_handle false and is named',
  async (_name, constraint, word) => {
    const { json } = await negotiate({ task_summary: 'Count words', weights, ...constraint })
    expect(json).toMatchObject({
      can_handle: false,
      score: 0,
      rejection_reason: expect.stringContaining(word),
    })
  },
)

test.each([
  [{ output_mime_types: ['image/*'] }],
  [{ output_mime_types: ['audio/wav', 'TEXT/plain;charset=utf-8'] }],
  [{ input_mime_types: ['*/*'] }],
  [{ max_latency_ms: 50 }],
  [{ required_tools: ['counter'], forbidden_tools: ['saw'] }],
])('%j can be satisfied', async (wanted) => {
  expect((await negotiate({ task_summary: 'Count words', weights, ...wanted })).json.can_handle).toBe(true)
})

test('can_handle requires a score ≥ min_score and a matching skill', async () => {
  const { score } = (await negotiate({ task_summary: 'Count words', weights })).json
  const withMin = async (min_score: number) =>
    (await negotiate({ task_summary: 'Count words', weights, min_score })).json.can_handle
  expect([await withMin(score), await withMin(Math.min(1, score + 0.0001))]).toEqual([true, score === 1])
  const foreign = (await negotiate({ task_summary: 'Zzz qqq', weights })).json
  expect(foreign).toMatchObject({
    can_handle: false,
    skill_matches: [],
    rejection_reason: expect.any(String),
  })
})
