import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { freePort } from '@parley/tools/testing/port'
import { expect } from '@playwright/test'
import { ParleyProcess, parley } from './parley-process.ts'
import { type Standing, skippedWithoutServers, test } from './standing.ts'

test.describe.configure({ mode: 'serial' })
skippedWithoutServers()

let folder: string
let gatewayUrl: string
let gateway: ParleyProcess
let stranger: ParleyProcess | undefined
/** Stands before the stranger's agent and sees all that reaches it. */
let door: http.Server
const seen: { method: string; url: string; authorization: string | undefined }[] = []
/** Of a caller: for no server in particular, and for the stranger's agent alone. */
let unbound: string
let token: string
let adminToken: string

const inHouse = () => ({
  cwd: path.join(folder, 'house'),
  env: { DATA_DIR: '.parley', PUBLIC_URL: gatewayUrl },
})

test.beforeAll(async ({ standing }) => {
  folder = mkdtempSync(path.join(tmpdir(), 'parley-stranger-'))
  mkdirSync(path.join(folder, 'house'))
  const port = await freePort()
  gatewayUrl = `http://127.0.0.1:${port}`
  gateway = await ParleyProcess.start(['gateway'], /^gateway +ready/m, {
    cwd: path.join(folder, 'house'),
    env: {
      NODE_ENV: 'production',
      PARLEY_EMBEDDED_OAUTH: 'yes',
      REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
      DATA_DIR: '.parley',
      PORT: String(port),
      ...standing.newStore(),
    },
  })
  const scoped = (scope: string) => parley(['token', '--operator', '--scope', scope], inHouse())
  unbound = (await scoped('agent:read agent:write')).stdout.trim()
  adminToken = (await scoped('agent:admin')).stdout.trim()
})
test.afterAll(async () => {
  await stranger?.[Symbol.asyncDispose]()
  door?.closeAllConnections()
  door?.close()
  await gateway?.[Symbol.asyncDispose]()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

/** The agent of a second folder, on a machine of its own as far as the gateway can see. */
async function startStranger(standing: Standing): Promise<void> {
  const cwd = path.join(folder, 'outside')
  mkdirSync(path.join(cwd, 'agents', 'hello'), { recursive: true })
  const library = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
  writeFileSync(
    path.join(cwd, 'agents', 'hello', 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(library)}
     const skill = { id: 'greet', name: 'Greet', description: 'Greets people by their name' }
     export default defineAgent({ name: 'hello', description: 'Greets', skills: [skill], handle: ({ text }) => 'Hello, ' + text })`,
  )
  const [port, front] = [await freePort(), await freePort()]
  door = http
    .createServer((request, response) => {
      const { method = '', url = '', headers } = request
      seen.push({ method, url, authorization: headers.authorization })
      const onward = http.request({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      onward.on('error', () => response.destroy())
      request.pipe(onward)
    })
    .listen(front, '127.0.0.1')
  const initial = readFileSync(path.join(folder, 'house', '.parley', 'oauth', 'initial-access-token'), 'utf8')
  stranger = await ParleyProcess.start(['agent', 'agents/hello'], /registered at the gateway/, {
    cwd,
    env: {
      GATEWAY_URL: gatewayUrl,
      OAUTH_INITIAL_TOKEN: initial.trim(),
      PORT: String(port),
      PUBLIC_URL: `http://127.0.0.1:${front}`,
      ...standing.newStore(),
    },
  })
}

interface Answer {
  status: number
  json: Record<string, unknown> & {
    result?: { id: string; status: { state: string }; artifacts: unknown }
    error?: { code: number; data: Record<string, unknown> }
  }
}

async function ask(route: string, bearer: string, body?: object): Promise<Answer> {
  const response = await fetch(`${gatewayUrl}${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  return { status: response.status, json: (await response.json()) as Answer['json'] }
}

const rpc = (method: string, params: object, route = '/agents/hello/') =>
  ask(route, token, { jsonrpc: '2.0', id: '1', method, params })
const message = () => ({
  message: {
    role: 'user',
    kind: 'message',
    messageId: crypto.randomUUID(),
    parts: [{ kind: 'text', text: 'Greet people by their name: Ada' }],
  },
})
const operate = (action: string, body?: object) => ask(`/registry/agents/hello/${action}`, adminToken, body)
const entry = async () =>
  (await (await fetch(`${gatewayUrl}/registry/agents/hello`)).json()) as Record<string, unknown>
const bearers = () => new Set(seen.map(({ authorization }) => authorization))
const workSeen = () => seen.filter(({ method, url }) => method === 'POST' && url === '/')

test('a stranger’s agent joins with proof, and is pending in production', async ({ standing }) => {
  await startStranger(standing)
  expect(stranger?.output).toContain('it gets no work before an operator admits it')
  expect(await entry()).toMatchObject({ slug: 'hello', verified: true, admitted: false, status: 'ready' })
})

test('pending, it gets no work and sees nobody’s token', async () => {
  const { token_resource: resource } = await entry()
  const scopes = ['--scope', 'agent:read agent:write', '--resource', String(resource)]
  token = (await parley(['token', '--operator', ...scopes], inHouse())).stdout.trim()
  const named = await rpc('message/send', message())
  expect([named.status, named.json.error?.code, named.json.error?.data['reason']]).toEqual([
    503,
    -32042,
    'not_admitted',
  ])
  const unnamed = await ask('/', unbound, {
    jsonrpc: '2.0',
    id: '1',
    method: 'message/send',
    params: message(),
  })
  expect(unnamed.status).toBeGreaterThanOrEqual(400)
  expect(await (await fetch(`${gatewayUrl}/agent/skills`)).json()).toEqual({ skills: [], total: 0 })
  expect(workSeen()).toEqual([])
  expect(bearers()).toEqual(new Set([undefined]))
})

test('only an operator admits it', async () => {
  const refused = await ask('/registry/agents/hello/admit', unbound)
  expect([refused.status, refused.json.error?.code]).toEqual([403, -32013])
  expect((await operate('admit')).json).toMatchObject({ admitted: true })
})

async function works(): Promise<void> {
  const sent = await rpc('message/send', message())
  expect(sent.status, JSON.stringify(sent.json)).toBe(200)
  const { id = '' } = sent.json.result ?? {}
  await expect(async () => {
    const { result } = (await rpc('tasks/get', { id })).json
    expect(result?.status.state).toBe('completed')
    expect(JSON.stringify(result?.artifacts)).toContain('Ada')
  }).toPass({ intervals: [50] })
}

test('admitted, it gets no token that does not name it: 403 says how to get one', async () => {
  for (const route of ['/agents/hello/', '/']) {
    const body = { jsonrpc: '2.0', id: '1', method: 'message/send', params: message() }
    const { status, json } = await ask(route, unbound, body)
    expect([status, json.error?.data['reason']]).toEqual([403, 'wrong_audience'])
  }
  expect(bearers()).toEqual(new Set([undefined]))
})

test('admitted, it works, and a token that names it reaches it with the call', async () => {
  await works()
  expect(bearers()).toEqual(new Set([undefined, `Bearer ${token}`]))
})

test('set aside by the operator it gets nothing; released it works again', async () => {
  expect((await operate('quarantine', { reason: 'looked at' })).json).toMatchObject({ quarantined: true })
  const before = workSeen().length
  const refused = await rpc('message/send', message())
  expect([refused.status, refused.json.error?.data['reason']]).toEqual([503, 'quarantined'])
  expect(workSeen()).toHaveLength(before)
  expect((await operate('release')).json).toMatchObject({ quarantine: null })
  await works()
})

test('both stop in peace', async () => {
  expect(await stranger?.stop()).toBe(0)
  expect(await gateway.stop()).toBe(0)
})
