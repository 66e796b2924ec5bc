import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { dialectCases } from '@parley/tools/testing/a2a-dialects.cases'
import { registeredClient } from '@parley/tools/testing/registered-client'
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

const caller = (name: string) =>
  registeredClient(name, { gatewayUrl: gateway.addresses.public, dataDir: path.join(folder, 'data') })

describe('at /agents/weather', () => {
  dialectCases({ url: () => `${gateway.addresses.public}/agents/weather`, caller })
})
describe('at the gateway’s own address', () => {
  dialectCases({ url: () => gateway.addresses.public, caller }, 'the weather forecast for any city')
})
