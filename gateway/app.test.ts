import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { StatementVerifier } from '@parley/kit/auth/statement'
import { makeLog } from '@parley/kit/process/log'
import { price } from '@parley/tools/testing/paid-agent'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'

let folder: string
let gateway: GatewayApp | undefined

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-gateway-'))
})

afterEach(async () => {
  await gateway?.[Symbol.asyncDispose]()
  gateway = undefined
  await rm(folder, { recursive: true, force: true })
})

const defineAgent = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href

async function addAgent(name: string, handle: string, more = ''): Promise<void> {
  await mkdir(path.join(folder, 'agents', name), { recursive: true })
  await writeFile(
    path.join(folder, 'agents', name, 'agent.js'),
    `import { existsSync } from 'node:fs'
     import { defineAgent } from ${JSON.stringify(defineAgent)}
     export default defineAgent({
       name: ${JSON.stringify(name)}, description: 'An agent of a test',
       skills: [{ id: 'echo', name: 'Echo', description: 'Repeats', tags: ['text'], examples: ['Say it'] }],
       handle: ${handle}, ${more}
     })`,
  )
}

const echo = 'async function* ({ text }) { yield text; yield "!" }'

async function start(env: NodeJS.ProcessEnv = {}, agents = true): Promise<GatewayApp> {
  const settings = gatewayConfig({
    PATH: process.env['PATH'],
    HOME: folder,
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: path.join(folder, 'data'),
    ...env,
  })
  const log = makeLog({ level: 'silent', name: 'test' })
  gateway = await startGatewayApp({
    settings,
    log,
    ...(agents && { agentsDir: path.join(folder, 'agents') }),
  })
  await gateway.supervisor?.settled()
  return gateway
}

async function clientIn(file: string) {
  const text = await readFile(path.join(folder, 'data', file), 'utf8')
  return JSON.parse(text) as { client_id: string; client_secret: string; token_url: string }
}

const devClient = () => clientIn('dev-client.json')

async function token(
  scope = 'agent:read agent:write',
  resource?: string,
  of = 'dev-client.json',
): Promise<string> {
  const { token_url, ...client } = await clientIn(of)
  const form = { ...client, scope, grant_type: 'client_credentials' }
  const body = new URLSearchParams({ ...form, ...(resource !== undefined && { resource }) })
  const response = await fetch(token_url, { method: 'POST', body })
  return ((await response.json()) as { access_token: string }).access_token
}

async function get(route: string, init?: RequestInit) {
  const response = await fetch(`${gateway?.addresses.public}${route}`, init)
  const text = await response.text()
  const json = (text.startsWith('{') ? JSON.parse(text) : {}) as Record<string, unknown>
  return { status: response.status, headers: response.headers, text, json }
}

async function call(slug: string, method: string, params: object, bearer: string) {
  const answer = await get(`/agents/${slug}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
  })
  return { ...answer, result: answer.json['result'] as Record<string, unknown> }
}

const message = (text: string) => ({
  message: { role: 'user', kind: 'message', messageId: crypto.randomUUID(), parts: [{ kind: 'text', text }] },
})

async function until(met: () => Promise<boolean>): Promise<void> {
  while (!(await met())) await new Promise((resolve) => setTimeout(resolve, 50))
}

test('work sent through the gateway is done by the agent, and its stream is forwarded', async () => {
  await addAgent('echo', echo)
  await start()
  const bearer = await token()
  const sent = await call('echo', 'message/send', message('hello'), bearer)
  expect(sent.result).toMatchObject({ kind: 'task', status: { state: 'submitted' } })
  const params = { task_id: sent.result['id'] }
  await until(async () => (await call('echo', 'tasks/get', params, bearer)).text.includes('"completed"'))
  const stream = await call('echo', 'message/stream', message('hello'), bearer)
  expect(stream.headers.get('content-type')).toContain('text/event-stream')
  expect(stream.text).toContain('"final":true')
})

test('the overview names the agents that lack settings and those that end repeatedly', async () => {
  await addAgent('idle', echo)
  await writeFile(
    path.join(folder, 'agents', 'idle', 'settings.json'),
    '{ "required": ["MODEL_URL", "MODEL"] }',
  )
  await addAgent('broken', `(() => { throw new Error('no model file') })()`)
  await start()
  const authorization = `Bearer ${await token('agent:read agent:admin', undefined, 'oauth/operator-client.json')}`
  const attention = async () =>
    (await get('/operator/overview', { headers: { authorization } })).json['attention']
  const about = { kind: 'agent_not_started', path: '/console/agents', command: 'npx parley overview' }
  await expect.poll(attention, { timeout: 30_000 }).toEqual([
    {
      ...about,
      agent: 'broken',
      text: expect.stringMatching(
        /^The process of broken ends repeatedly: .*no model file.* Check its log\.$/,
      ),
      since: expect.stringMatching(/^20/),
      count: 1,
    },
    {
      ...about,
      kind: 'agent_not_configured',
      agent: 'idle',
      text: 'idle is not configured: it needs MODEL_URL, MODEL. To use it, set them and restart the gateway.',
      since: null,
      count: 1,
    },
  ])
})

test("the payment page has the gateway's address, so that it survives a change of the agent's port", async () => {
  await addAgent('paid', echo, `executionCost: ${JSON.stringify(price)}`)
  const { registry, addresses } = await start()
  const authorization = `Bearer ${await token()}`
  for (const base of [registry.find('paid')?.url, `${addresses.public}/agents/paid`]) {
    const started = await fetch(`${base}/api/start-payment-session`, {
      method: 'POST',
      headers: { authorization },
    })
    const { capture_url: url } = (await started.json()) as { capture_url: string }
    expect([base, url.startsWith(`${addresses.public}/agents/paid/pay/`)]).toEqual([base, true])
    expect((await fetch(url)).status).toBe(200)
  }
})

test('a request without a token gets the -32009 of the agent, forwarded by the gateway', async () => {
  await addAgent('echo', echo)
  await start()
  const { status, json, headers } = await get('/agents/echo/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
  expect(json).toMatchObject({ error: { code: -32009 } })
})

test('one agent accepts tokens for its gateway URL or DID; tokens for the gateway are valid through the gateway only', async () => {
  await addAgent('one', echo)
  await addAgent('two', echo)
  const { addresses, registry } = await start()
  const atGateway = (await get('/agents/one/.well-known/agent.json')).json
  for (const resource of [String(atGateway['url']), String(atGateway['did'])]) {
    const bound = await token(undefined, resource)
    expect([resource, (await call('one', 'tasks/list', {}, bound)).status]).toEqual([resource, 200])
    const refused = await call('two', 'tasks/list', {}, bound)
    expect(refused).toMatchObject({ status: 403, json: { error: { data: { reason: 'wrong_audience' } } } })
    const beat = { method: 'PUT', headers: { authorization: `Bearer ${bound}` } }
    expect((await get('/registry/agents/one/heartbeat', beat)).status).toBe(401)
  }
  const forGateway = await token(undefined, addresses.public)
  expect((await call('one', 'tasks/list', {}, forGateway)).status).toBe(200)
  expect((await direct(registry.find('one')?.url, forGateway)).code).toBe(-32010)
  const headers = { authorization: `Bearer ${forGateway}`, 'content-type': 'application/json' }
  expect((await get('/registry/agents', { method: 'POST', headers, body: '{}' })).status).toBe(400)
})

/** Sends `tasks/list` to an agent without the gateway. */
async function direct(url: string | undefined, bearer: string) {
  const answer = await fetch(`${url}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} }),
  })
  const { error } = (await answer.json()) as { error?: { code: number; message: string } }
  return { status: answer.status, code: error?.code, message: error?.message }
}

test('with AGENT_TOKEN_AUDIENCE=required, agents refuse a direct caller whose token has no audience', async () => {
  await addAgent('one', echo)
  const { registry } = await start({ AGENT_TOKEN_AUDIENCE: 'required' })
  const { url, did = '' } = registry.find('one') ?? {}
  expect((await call('one', 'tasks/list', {}, await token())).status).toBe(200)
  const refused = await direct(url, await token())
  expect(refused).toMatchObject({ status: 401, code: -32010 })
  expect(refused.message).toContain(`resource=${did}`)
  expect(await direct(url, await token(undefined, did))).toMatchObject({ status: 200 })
})

test('a revoked token is refused by the next request, although the gateway has exchanged it before', async () => {
  await addAgent('one', echo)
  const { addresses } = await start()
  const { token_url: _, ...client } = await devClient()
  const bearer = await token()
  const list = () => call('one', 'tasks/list', {}, bearer)
  expect([(await list()).status, (await list()).status]).toEqual([200, 200])
  const body = new URLSearchParams({ ...client, token: bearer })
  expect((await fetch(`${addresses.public}/oauth2/revoke`, { method: 'POST', body })).status).toBe(200)
  expect(await list()).toMatchObject({ status: 401, json: { id: '1', error: { code: -32010 } } })
})

test('a gateway with its own OAuth server says that it signs no statements', async () => {
  const { addresses } = await start({}, false)
  expect(await new StatementVerifier(addresses.public).gateways()).toBeUndefined()
})

test('responses that differ per caller keep the Vary header of CORS', async () => {
  const { addresses } = await start({ CORS_ORIGINS: 'https://app.example' }, false)
  const { headers } = await fetch(`${addresses.public}/.well-known/agent.json`)
  expect(headers.get('vary')).toBe('Origin, Authorization')
})

test('public routes describe the gateway and its agents', async () => {
  await addAgent('echo', echo)
  const { addresses } = await start()
  const list = await get('/registry/agents?q=repeats&tag=TEXT&skill=echo&status=ready')
  expect(list.json).toMatchObject({
    agents: [{ slug: 'echo', status: 'ready', verified: true, admitted: true, skills: [{ id: 'echo' }] }],
    total: 1,
    next_cursor: null,
  })
  const [entry] = list.json['agents'] as [{ did: string; id: string }]
  for (const name of ['echo', entry.id, encodeURIComponent(entry.did)]) {
    const one = await get(`/registry/agents/${name}`)
    expect(one.json).toMatchObject({ did: entry.did, card: { url: `${addresses.public}/agents/echo` } })
    expect(one.json).toMatchObject({
      skills: [{ documentation_path: '/agents/echo/agent/skills/echo/documentation' }],
    })
  }
  expect((await get('/registry/agents?q=nothing')).json).toMatchObject({ agents: [], total: 0 })
  const card = await get('/agents/echo/.well-known/agent.json')
  expect(card.json).toMatchObject({ did: entry.did, url: `${addresses.public}/agents/echo` })
  const again = await get('/agents/echo/.well-known/agent.json', {
    headers: { 'if-none-match': card.headers.get('etag') ?? '' },
  })
  expect(again.status).toBe(304)
  expect((await get('/.well-known/agent.json')).json).toMatchObject({
    url: addresses.public,
    skills: [{ id: 'echo' }],
  })
  expect((await get('/agent/skills')).json).toMatchObject({
    total: 1,
    skills: [{ id: 'echo', agent: 'echo' }],
  })
  expect((await get('/health')).json).toMatchObject({
    ready: true,
    checks: { registry: 'ok', oauth: 'ok', storage: 'ok' },
  })
  expect((await get('/metrics')).text).toContain('http_requests_total')
})

test.each([
  ['/docs', 404, -32040, 'route'],
  ['/registry/agents/nobody', 404, -32040, 'agent'],
  ['/agents/nobody/', 404, -32040, 'agent'],
  ['/agents/nobody/.well-known/agent.json', 404, -32040, 'agent'],
  ['/registry/agents?limit=0', 400, -32602, undefined],
  ['/registry/agents?limit=1001', 400, -32602, undefined],
  ['/registry/agents?status=dead', 400, -32602, undefined],
  ['/registry/agents?cursor=@@', 400, -32602, undefined],
  [`/registry/agents?q=${'x'.repeat(300)}`, 400, -32602, undefined],
  ['/registry/agents?q=a&q=b', 400, -32602, undefined],
])('GET %s returns %i with the error envelope', async (route, status, code, reason) => {
  await start({}, false)
  const answer = await get(route)
  expect(answer.status).toBe(status)
  expect(answer.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code } })
  expect((answer.json['error'] as { data: { reason?: string } }).data.reason).toBe(reason)
})

test('the list is read page by page with the cursor', async () => {
  for (const name of ['a', 'b', 'c']) await addAgent(name, echo)
  await start()
  const first = await get('/registry/agents?limit=2')
  expect(first.json).toMatchObject({ agents: [{ slug: 'a' }, { slug: 'b' }], total: 3 })
  const second = await get(`/registry/agents?limit=2&cursor=${first.headers.get('x-next-cursor')}`)
  expect(second.json).toMatchObject({ agents: [{ slug: 'c' }], total: 3, next_cursor: null })
})

test.each<[string, { scope?: string; bearer?: string; body?: string; name?: string }, number, number]>([
  ['without a token', { bearer: '' }, 401, -32009],
  ['with an unknown token', { bearer: 'x' }, 401, -32010],
  ['with a read-only token', { scope: 'agent:read' }, 403, -32013],
  ['by a client that is not the owner', {}, 404, -32040],
  ['for an unknown agent', { name: 'nobody' }, 404, -32040],
])(
  'a heartbeat %s is refused',
  async (_what, { scope, bearer, body = '{}', name = 'external' }, status, code) => {
    const { registry } = await start({}, false)
    await registry.register({ ...external, owner: 'someone-else' })
    const authorization = bearer === '' ? {} : { authorization: `Bearer ${bearer ?? (await token(scope))}` }
    const answer = await get(`/registry/agents/${name}/heartbeat`, {
      method: 'PUT',
      headers: authorization,
      body,
    })
    expect(answer.status).toBe(status)
    expect(answer.json).toMatchObject({ error: { code } })
  },
)

const external = {
  name: 'external',
  description: '',
  url: 'http://127.0.0.1:1',
  card: {},
  skills: [],
  origin: 'registered' as const,
  verified: false,
  admitted: false,
}

test.each([
  ['invalid JSON', 'x', -32700],
  ['no body', '', -32700],
  ['a list', '[]', -32602],
  ['a negative number', '{"queue_depth":-1}', -32602],
  ['a number as a string', '{"latency_p50_ms":"5"}', -32602],
  ['a huge number', '{"active_tasks":1e300}', -32602],
  ['a prototype key', '{"__proto__":{"a":1}}', -32600],
])('a heartbeat from the owner with %s is refused', async (_what, body, code) => {
  const { registry } = await start({}, false)
  await registry.register({ ...external, owner: 'dev-client' })
  const headers = { authorization: `Bearer ${await token()}` }
  const answer = await get('/registry/agents/external/heartbeat', {
    method: 'PUT',
    headers,
    ...(body && { body }),
  })
  expect(answer.json).toMatchObject({ error: { code } })
})

test('a heartbeat from the owner renews the lease and stores the load, and unknown fields are ignored', async () => {
  const { registry } = await start({}, false)
  const { id } = await registry.register({ ...external, owner: 'dev-client' })
  registry.setStatus(id, 'unreachable')
  const body = JSON.stringify({
    queue_depth: 3,
    activeTasks: 2,
    latency_p50_ms: 12.5,
    verified: true,
    admitted: true,
  })
  const headers = { authorization: `Bearer ${await token()}` }
  const answer = await get('/registry/agents/external/heartbeat', { method: 'PUT', headers, body })
  expect(answer.status).toBe(200)
  expect((await get('/registry/agents/external')).json).toMatchObject({
    status: 'ready',
    verified: false,
    admitted: false,
    load: { queue_depth: 3, active_tasks: 2, latency_p50_ms: 12.5, completed: null },
  })
})

test('agents that are not admitted are listed, but their skills are not', async () => {
  const { registry } = await start({}, false)
  const skill = { id: 's', name: 's', description: '', tags: [], input_modes: [], output_modes: [] }
  await registry.register({ ...external, owner: 'someone', skills: [skill] })
  expect((await get('/registry/agents')).json).toMatchObject({ total: 1, agents: [{ admitted: false }] })
  expect((await get('/agent/skills')).json).toEqual({ skills: [], total: 0 })
})

test('a call to an agent with a dead process immediately gets 503 with Retry-After, and works after the restart', async () => {
  await addAgent('echo', echo)
  const { supervisor } = await start()
  process.kill(supervisor?.pids()[0] as number, 'SIGKILL')
  let down = await get('/agents/echo/health')
  // A request that was in progress when the process died ends with a broken connection.
  await until(async () => {
    down = await get('/agents/echo/health')
    return down.status === 503 && JSON.stringify(down.json).includes('agent_down')
  })
  expect(down.json).toMatchObject({ error: { code: -32042, data: { reason: 'agent_down', agent: 'echo' } } })
  expect(down.headers.get('retry-after')).toBe('2')
  expect((await get('/agents/echo/.well-known/agent.json')).status).toBe(200)
  await until(async () => (await get('/agents/echo/health')).status === 200)
})

test('while the gateway drains, requests in progress complete, new ones get 503 and /health is not ready', async () => {
  const go = path.join(folder, 'agents', 'slow', 'go')
  await addAgent(
    'slow',
    `async ({ text }) => { while (!existsSync(${JSON.stringify(go)})) await new Promise((r) => setTimeout(r, 20)); return text }`,
  )
  await start()
  const bearer = await token()
  const stream = call('slow', 'message/stream', message('hello'), bearer)
  await until(async () => (await call('slow', 'tasks/list', {}, bearer)).text.includes('"working"'))
  const stopped = gateway?.[Symbol.asyncDispose]()
  expect(await get('/health')).toMatchObject({ status: 503, json: { ready: false } })
  const refused = await get('/registry/agents')
  expect(refused).toMatchObject({
    status: 503,
    json: { error: { code: -32042, data: { reason: 'draining' } } },
  })
  await writeFile(go, '')
  expect((await stream).text).toContain('"last_chunk":true')
  await stopped
  gateway = undefined
})

test('entries, clients and tokens survive a restart, and the agents keep their DIDs', async () => {
  await addAgent('echo', echo)
  const first = await start()
  const bearer = await token()
  const sent = await call('echo', 'message/send', message('hello'), bearer)
  const { did, registeredAt } = first.registry.bySlug('echo') ?? {}
  const { port } = first.addresses
  await first[Symbol.asyncDispose]()
  const second = await start({ PORT: String(port) })
  expect(second.registry.bySlug('echo')).toMatchObject({ did, registeredAt, status: 'ready' })
  expect((await call('echo', 'tasks/get', { task_id: sent.result['id'] }, bearer)).status).toBe(200)
})

test('a second gateway on the same data folder is refused with a message', async () => {
  const first = await start({}, false)
  await expect(start({}, false)).rejects.toThrow(/is open in another process/)
  gateway = first
  expect((await get('/health')).status).toBe(200)
})

test('the file of the development client is readable only by its owner and is removed in production', async () => {
  await start({}, false)
  expect((await stat(path.join(folder, 'data', 'dev-client.json'))).mode & 0o777).toBe(0o600)
  const client = await devClient()
  const bearer = await token()
  const { port } = gateway?.addresses ?? {}
  await gateway?.[Symbol.asyncDispose]()
  const env = { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes', PORT: String(port) }
  const { registry } = await start(env, false)
  await expect(devClient()).rejects.toMatchObject({ code: 'ENOENT' })
  const { token_url, ...credentials } = client
  const body = new URLSearchParams({ ...credentials, grant_type: 'client_credentials' })
  expect((await fetch(token_url, { method: 'POST', body })).status).toBe(401)
  await registry.register({ ...external, owner: 'dev-client' })
  const headers = { authorization: `Bearer ${bearer}` }
  const beat = await get('/registry/agents/external/heartbeat', { method: 'PUT', headers, body: '{}' })
  expect(beat.json).toMatchObject({ error: { code: -32010 } })
})
