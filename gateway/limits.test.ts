import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
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

async function start(env: NodeJS.ProcessEnv): Promise<string> {
  const agentFolder = path.join(folder, 'agents', 'echo')
  await mkdir(agentFolder, { recursive: true })
  await writeFile(
    path.join(agentFolder, 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href)}
     export default defineAgent({ name: 'echo', description: 'Repeats', handle: ({ text }) => text,
       skills: [{ id: 'echo', name: 'Echo', description: 'Repeats' }] })`,
  )
  const DATA_DIR = path.join(folder, 'data')
  const home = { PATH: process.env['PATH'], HOME: folder, PORT: '0', LOG_LEVEL: 'silent', DATA_DIR }
  const settings = gatewayConfig({ ...home, ...env })
  const log = makeLog({ level: 'silent', name: 'test' })
  gateway = await startGatewayApp({ settings, log, agentsDir: path.join(folder, 'agents') })
  await gateway.supervisor?.settled()
  return gateway.addresses.public
}

async function token(): Promise<string> {
  const file = path.join(folder, 'data', 'dev-client.json')
  const { token_url, ...client } = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>
  const body = new URLSearchParams({ ...client, grant_type: 'client_credentials' })
  const response = await fetch(token_url ?? '', { method: 'POST', body })
  return ((await response.json()) as { access_token: string }).access_token
}

test('the gateway limits requests per address and the agent limits them per caller, both for the original client', async () => {
  const url = await start({ RATE_LIMIT_PER_MINUTE: '10', TRUSTED_PROXIES: '127.0.0.1' })
  const bearer = await token()
  const ask = async (client: string) => {
    const response = await fetch(`${url}/agents/echo/`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-type': 'application/json',
        'x-forwarded-for': client,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/list', params: {} }),
    })
    const { error } = (await response.json()) as { error?: { code: number; data: { reason: string } } }
    return error === undefined ? response.status : [response.status, error.code, error.data.reason]
  }
  const found = []
  for (let number = 0; number < 12; number += 1) found.push(await ask(`203.0.113.${number % 2}`))
  const byCaller = [429, -32041, 'caller']
  expect(found).toEqual([...Array(10).fill(200), byCaller, byCaller])
  for (let number = 0; number < 4; number += 1) expect(await ask('203.0.113.0')).toEqual(byCaller)
  expect(await ask('203.0.113.0')).toEqual([429, -32041, 'address'])
  expect((await fetch(`${url}/health`, { headers: { 'x-forwarded-for': '203.0.113.0' } })).status).toBe(200)
})

test('CORS_ORIGINS applies to the gateway and, through it, to its agents', async () => {
  const url = await start({ CORS_ORIGINS: 'https://app.example' })
  const headers = { origin: 'https://app.example' }
  for (const at of ['/registry/agents', '/agents/echo/agent/skills']) {
    const answer = await fetch(`${url}${at}`, { headers })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, headers.origin])
    const asked = await fetch(`${url}${at}`, {
      method: 'OPTIONS',
      headers: { ...headers, 'access-control-request-method': 'GET' },
    })
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, headers.origin])
    const foreign = await fetch(`${url}${at}`, { headers: { origin: 'https://evil.example' } })
    expect(foreign.headers.has('access-control-allow-origin')).toBe(false)
  }
})
