import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { price } from '@parley/tools/testing/paid-agent'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import { saying } from './testing.ts'

let folder: string
let gateway: GatewayApp

/**
 * Without load and performance, by which the paid agent could win while the free one is busy. Without cost, the scores are so
 * close that no message waits for the free agent to come back.
 */
const weights = { skill_match: 0.55, io_compatibility: 0.2 }
const patient = { timeout: 180_000, interval: 20 }
const defineAgent = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-killed-agent-'))
  await addAgent('adder', 'Adds numbers: sums of two numbers and more')
  await addAgent(
    'forecaster',
    'Forecasts sums of numbers for the next months',
    `executionCost: ${JSON.stringify(price)}`,
  )
  const settings = gatewayConfig({
    PATH: process.env['PATH'],
    HOME: folder,
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: path.join(folder, 'data'),
  })
  const log = makeLog({ level: 'silent', name: 'test' })
  gateway = await startGatewayApp({ settings, log, agentsDir: path.join(folder, 'agents') })
  await gateway.supervisor?.settled()
})

afterEach(async () => {
  await gateway[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

async function addAgent(name: string, description: string, more = ''): Promise<void> {
  await mkdir(path.join(folder, 'agents', name), { recursive: true })
  await writeFile(
    path.join(folder, 'agents', name, 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(defineAgent)}
     export default defineAgent({
       name: ${JSON.stringify(name)}, description: ${JSON.stringify(description)},
       skills: [{ id: 'do', name: 'Numbers', description: ${JSON.stringify(description)}, tags: ['numbers'] }],
       handle: ({ text }) => text, ${more}
     })`,
  )
}

async function token(): Promise<string> {
  const file = path.join(folder, 'data', 'dev-client.json')
  const { token_url, ...client } = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>
  const body = new URLSearchParams({ ...client, grant_type: 'client_credentials' })
  const response = await fetch(token_url ?? '', { method: 'POST', body })
  return ((await response.json()) as { access_token: string }).access_token
}

interface Answer {
  status: number
  agent: string | null
  code: number | undefined
  retryAfter: string | null
}

test('after kill -9 of a supervised agent under load, every message is accepted or gets 503 -32042 with Retry-After', async () => {
  const bearer = await token()
  const answers: Answer[] = []
  const send = async () => {
    const response = await fetch(gateway.addresses.public, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${bearer}` },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: '1',
        method: 'message/send',
        params: saying('add the numbers 12 and 30: their sum', {}, { negotiation: { weights } }),
      }),
    })
    const { error } = (await response.json()) as { error?: { code?: number } }
    const { status, headers } = response
    const [slug, retryAfter] = [headers.get('x-agent'), headers.get('retry-after')]
    answers.push({ status, agent: slug, code: error?.code, retryAfter })
  }
  const taken = () => answers.filter(({ status, agent }) => status === 200 && agent === 'adder').length
  const load = { runs: true }
  const senders = Array.from({ length: 8 }, async () => {
    while (load.runs) await send()
  })
  try {
    for (let kills = 0; kills < 3; kills += 1) {
      const before = taken()
      await vi.waitUntil(() => taken() > before + 20, patient)
      // The process ids are sorted by agent name.
      const [pid] = gateway.supervisor?.pids() ?? []
      process.kill(pid ?? 0, 'SIGKILL')
      await vi.waitUntil(() => gateway.registry.find('adder')?.status !== 'ready', patient)
    }
    const before = taken()
    await vi.waitUntil(() => taken() > before, patient)
  } finally {
    load.runs = false
    await Promise.all(senders)
  }
  const others = answers.filter(({ status, agent }) => status !== 200 || agent !== 'adder')
  const clear = others.filter(
    ({ status, code, retryAfter }) => status === 503 && code === -32042 && retryAfter !== null,
  )
  expect(others.filter((answer) => !clear.includes(answer))).toEqual([])
}, 600_000)
