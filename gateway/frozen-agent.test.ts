import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import { saying } from './testing.ts'

const stack = new AsyncDisposableStack()
afterEach(() => stack.disposeAsync())

const defineAgent = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href

/** Starts a gateway in development mode with two supervised agents, `arithmetic` and `weather`. */
async function started(): Promise<{ gateway: GatewayApp; folder: string }> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-frozen-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  for (const [name, skill] of [
    ['arithmetic', 'Calculates sums and products of numbers'],
    ['weather', 'Weather forecast for any city'],
  ]) {
    await mkdir(path.join(folder, 'agents', `${name}`), { recursive: true })
    await writeFile(
      path.join(folder, 'agents', `${name}`, 'agent.js'),
      `import { defineAgent } from ${JSON.stringify(defineAgent)}
       export default defineAgent({
         name: '${name}', description: '${skill}',
         skills: [{ id: '${name}', name: '${name}', description: '${skill}', tags: [], examples: ['${skill}'] }],
         handle: ({ text }) => text,
       })`,
    )
  }
  const settings = gatewayConfig({
    PATH: process.env['PATH'],
    HOME: folder,
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: path.join(folder, 'data'),
    REGISTRY_OPEN: 'yes',
  })
  const log = makeLog({ level: 'silent', name: 'test' })
  const gateway = stack.use(await startGatewayApp({ settings, log, agentsDir: path.join(folder, 'agents') }))
  await gateway.supervisor?.settled()
  return { gateway, folder }
}

async function tokenOf(folder: string): Promise<string> {
  const text = await readFile(path.join(folder, 'data', 'dev-client.json'), 'utf8')
  const { token_url, ...client } = JSON.parse(text) as Record<string, string>
  const body = new URLSearchParams({ ...client, grant_type: 'client_credentials' })
  const response = await fetch(`${token_url}`, { method: 'POST', body })
  return ((await response.json()) as { access_token: string }).access_token
}

/** Starts an external agent that claims every id in a request. Returns the callers' requests that it received. */
async function hostile({ registry }: GatewayApp): Promise<string[]> {
  const received: string[] = []
  const server = http.createServer((request, response) => {
    // Health probes carry no token.
    if (request.method === 'POST' || request.headers.authorization !== undefined)
      received.push(`${request.method} ${request.url}`)
    const result = { id: randomUUID(), context_id: randomUUID(), status: { state: 'completed' } }
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stack.defer(() => void server.close())
  const description = 'Calculates sums and products of numbers, weather forecast for any city'
  await registry.register({
    name: 'liar',
    description,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    card: {},
    skills: [],
    owner: 'liar',
    origin: 'registered',
    verified: false,
    admitted: true,
    admittedBy: 'open',
  })
  return received
}

test('while a process is frozen (SIGSTOP), only calls for its own tasks get 503, and they work again after SIGCONT', async () => {
  const { gateway, folder } = await started()
  const received = await hostile(gateway)
  const authorization = `Bearer ${await tokenOf(folder)}`
  const call = async (url: string, method: string, params: object) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params })
    const headers = { 'content-type': 'application/json', authorization }
    const response = await fetch(url, { method: 'POST', headers, body })
    const json = (await response.json()) as { result: { id: string }; error: { code: number; data: object } }
    return { status: response.status, headers: response.headers, ...json }
  }
  const url = gateway.addresses.public
  const direct = await call(`${gateway.registry.find('arithmetic')?.url}/`, 'message/send', saying('2 + 2'))
  const pid = gateway.supervisor?.pids()[0] ?? 0
  process.kill(pid, 'SIGSTOP')
  try {
    const silent = { code: -32042, data: { reason: 'agent_down', agent: 'arithmetic' } }
    const asked = await call(url, 'tasks/get', { task_id: direct.result.id })
    expect([asked.status, asked.headers.get('retry-after')]).toEqual([503, '2'])
    expect(asked.error).toMatchObject(silent)
    const withTask = saying('weather forecast for any city', { taskId: randomUUID() })
    expect((await call(url, 'message/send', withTask)).error).toMatchObject(silent)
    const fresh = saying('weather forecast for any city', { contextId: randomUUID() })
    expect((await call(url, 'message/send', fresh)).headers.get('x-agent')).toBe('weather')
  } finally {
    process.kill(pid, 'SIGCONT')
  }
  const find = async () =>
    (await call(url, 'tasks/get', { task_id: direct.result.id })).headers.get('x-agent')
  await expect.poll(find, { timeout: 60_000, interval: 500 }).toBe('arithmetic')
  expect(received).toEqual([])
})
