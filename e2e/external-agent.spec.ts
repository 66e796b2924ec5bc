import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import http from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '@parley/tools/testing/port'
import { expect } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import type { Backends } from './harness/deployment.ts'
import { ParleyProcess, parley } from './harness/parley-process.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

let folder: string
let gatewayUrl: string
let gateway: ParleyProcess
let agent: ParleyProcess | undefined
/** A proxy in front of the agent that records every request. */
let proxy: http.Server
const requests: { method: string; url: string; authorization: string | undefined }[] = []
/** A caller's tokens: one without an audience, and one for the external agent only. */
let unbound: string
let token: string
let adminToken: string

const gatewayFolder = () => path.join(folder, 'gateway')
const operator = (...args: string[]) =>
  parley(args, {
    cwd: gatewayFolder(),
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      DATA_DIR: '.parley',
      PUBLIC_URL: gatewayUrl,
    },
  })

test.beforeAll(async ({ backends }) => {
  folder = mkdtempSync(path.join(tmpdir(), 'parley-external-'))
  mkdirSync(gatewayFolder())
  const port = await freePort()
  gatewayUrl = `http://127.0.0.1:${port}`
  gateway = new ParleyProcess({
    name: 'gateway',
    args: ['gateway'],
    readyOutput: /^gateway +ready/m,
    cwd: gatewayFolder(),
    port,
    env: {
      NODE_ENV: 'production',
      PARLEY_EMBEDDED_OAUTH: 'yes',
      REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
      DATA_DIR: '.parley',
      ...backends.newStore(),
    },
  })
  await gateway.start()
  const scoped = (scope: string) => operator('token', '--operator', '--scope', scope)
  unbound = (await scoped('agent:read agent:write')).stdout.trim()
  adminToken = (await scoped('agent:admin')).stdout.trim()
})
test.afterAll(async () => {
  await agent?.[Symbol.asyncDispose]()
  proxy?.closeAllConnections()
  proxy?.close()
  await gateway?.[Symbol.asyncDispose]()
  if (folder) rmSync(folder, { recursive: true, force: true })
})

/** Runs the agent from a second folder, so that the gateway treats it as an agent on another machine. */
async function startAgent(backends: Backends): Promise<void> {
  const cwd = path.join(folder, 'agent')
  mkdirSync(cwd)
  const [port, proxyPort] = [await freePort(), await freePort()]
  proxy = http
    .createServer((request, response) => {
      const { method = '', url = '', headers } = request
      requests.push({ method, url, authorization: headers.authorization })
      const onward = http.request({ host: '127.0.0.1', port, method, path: url, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      onward.on('error', () => response.destroy())
      request.pipe(onward)
    })
    .listen(proxyPort, '127.0.0.1')
  const initial = readFileSync(path.join(gatewayFolder(), '.parley', 'oauth', 'initial-access-token'), 'utf8')
  agent = new ParleyProcess({
    name: 'agent',
    args: ['agent', path.join(import.meta.dirname, 'agents', 'hello')],
    readyOutput: /registered at the gateway/,
    cwd,
    port,
    env: {
      GATEWAY_URL: gatewayUrl,
      OAUTH_INITIAL_TOKEN: initial.trim(),
      PUBLIC_URL: `http://127.0.0.1:${proxyPort}`,
      ...backends.newStore(),
    },
  })
  await agent.start()
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
const bearers = () => new Set(requests.map(({ authorization }) => authorization))
const messages = () => requests.filter(({ method, url }) => method === 'POST' && url === '/')

test('an external agent registers with proof of its key and is pending in production', async ({
  backends,
}) => {
  await startAgent(backends)
  expect(agent?.output).toContain('it receives no work until an operator admits it')
  expect(await entry()).toMatchObject({ slug: 'hello', verified: true, admitted: false, status: 'ready' })
})

test('a pending agent gets no work and no tokens', async () => {
  const { token_resource: resource } = await entry()
  const scopes = ['--scope', 'agent:read agent:write', '--resource', String(resource)]
  token = (await operator('token', '--operator', ...scopes)).stdout.trim()
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
  expect(messages()).toEqual([])
  expect(bearers()).toEqual(new Set([undefined]))
})

test('only an operator can admit a pending agent', async () => {
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

test('an admitted agent works and receives exchanged tokens only', async () => {
  await works()
  for (const route of ['/agents/hello/', '/']) {
    const body = { jsonrpc: '2.0', id: '1', method: 'message/send', params: message() }
    expect((await ask(route, unbound, body)).status).toBe(200)
  }
  const received = [...bearers()].filter((bearer) => bearer !== undefined)
  expect(received).not.toEqual([])
  expect(received).toEqual(received.map(() => expect.stringMatching(/^Bearer pxt_/)))
})

test('a quarantined agent gets no work and no tokens, and works again after its release', async () => {
  expect((await operate('quarantine', { reason: 'looked at' })).json).toMatchObject({ quarantined: true })
  const before = messages().length
  const refused = await rpc('message/send', message())
  expect([refused.status, refused.json.error?.data['reason']]).toEqual([503, 'quarantined'])
  expect(messages()).toHaveLength(before)
  expect((await operate('release')).json).toMatchObject({ quarantine: null })
  await works()
})

test('the gateway and the agent exit with code 0', async () => {
  expect(await agent?.stop()).toBe(0)
  expect(await gateway.stop()).toBe(0)
})
