import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { dialectCases } from '@parley/tools/testing/a2a-dialects.cases'
import { afterAll, beforeAll, describe } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'

let folder: string
let gateway: GatewayApp

const defineAgent = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
const agent = `import { defineAgent } from ${JSON.stringify(defineAgent)}
  export default defineAgent({
    name: 'weather', description: 'Weather forecast for any city',
    skills: [{ id: 'weather', name: 'weather', description: 'Weather forecast for any city', tags: ['weather'] }],
    handle: async ({ text, ask, bid, history, signal }) => {
      if (text.startsWith('ask') && history.length === 1) return ask('what?')
      if (text.startsWith('bid') && history.length === 1) return bid({ amount: '0.01' })
      if (text.startsWith('hang')) await new Promise((resolve) => signal.addEventListener('abort', resolve))
      return 'done'
    },
  })`

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-dialects-'))
  await mkdir(path.join(folder, 'agents', 'weather'), { recursive: true })
  await writeFile(path.join(folder, 'agents', 'weather', 'agent.js'), agent)
  const settings = gatewayConfig({
    PATH: process.env['PATH'],
    HOME: folder,
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: path.join(folder, 'data'),
    WEBHOOK_ALLOWED_HOSTS: '127.0.0.1',
  })
  const log = makeLog({ level: 'silent', name: 'test' })
  gateway = await startGatewayApp({ settings, log, agentsDir: path.join(folder, 'agents') })
  await gateway.supervisor?.settled()
}, 60_000)
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function caller(name: string): Promise<{ token: string; id: string }> {
  const oauth = `${gateway.addresses.public}/oauth2`
  const initial = await readFile(path.join(folder, 'data', 'oauth', 'initial-access-token'), 'utf8')
  const registered = await fetch(`${oauth}/register`, {
    method: 'POST',
    headers: { authorization: `Bearer ${initial.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: name, grant_types: ['client_credentials'] }),
  })
  const client = (await registered.json()) as { client_id: string; client_secret: string }
  const credentials = [client.client_id, client.client_secret].map(encodeURIComponent).join(':')
  const answer = await fetch(`${oauth}/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'agent:read agent:write' }),
  })
  const { access_token: token } = (await answer.json()) as { access_token: string }
  return { token, id: client.client_id }
}

describe('at /agents/weather', () => {
  dialectCases({ url: () => `${gateway.addresses.public}/agents/weather`, caller })
})
describe('at the gateway’s own address', () => {
  dialectCases({ url: () => gateway.addresses.public, caller }, 'the weather forecast for any city')
})
