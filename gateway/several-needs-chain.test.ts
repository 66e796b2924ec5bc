import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { makeLog } from '@parley/kit/process/log'
import { registeredClient } from '@parley/tools/testing/registered-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import { saying } from './testing.ts'

/** Supervised agents with the SDK, so that references, idempotency and waiting are those of real agents. */

const defineAgent = new URL('../shared/agent/author/define-agent.ts', import.meta.url).href
let folder: string
let gateway: GatewayApp
let token: string

async function addAgent(name: string, description: string, handle: string): Promise<void> {
  await mkdir(path.join(folder, 'agents', name), { recursive: true })
  await writeFile(
    path.join(folder, 'agents', name, 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(defineAgent)}
     export default defineAgent({
       name: '${name}', description: '${description}',
       skills: [{ id: '${name}', name: '${name}', description: '${description}', tags: ['${name}'] }],
       handle: ${handle},
     })`,
  )
}

const asking = `async ({ text, ask, history }) => {
  if (text.includes('Berlin') && history.length === 1) return ask('what?')
  if (text.includes('Rome')) throw new Error('no forecast')
  return 'rain'
}`
const reading = `async ({ text, references }) => JSON.stringify({ text, references: references.map((one) => one.text) })`

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-needs-'))
  await addAgent('weather', 'Weather forecast for any city', asking)
  await addAgent('chess', 'Plays chess and suggests the best move', reading)
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
  const at = { gatewayUrl: gateway.addresses.public, dataDir: path.join(folder, 'data') }
  token = (await registeredClient('a client', at)).token
}, 60_000)
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function split(params: object, headers = {}) {
  const response = await fetch(`${gateway.addresses.public}/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params }),
  })
  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  return (await response.json()) as any
}
const configuration = { wait_ms: 30_000, negotiation: { split: true } }
const asked = (city: string) =>
  saying(`Forecast the weather for ${city} and suggest the best chess move`, {}, configuration)

test('the agent of the second part reads the result of the first, and a repeated message returns the same tasks', async () => {
  const message = asked('Paris')
  const [first, second] = [
    await split(message, { 'idempotency-key': 'one' }),
    await split(message, { 'idempotency-key': 'one' }),
  ]
  expect(first.result.metadata.chain).toMatchObject([
    { agent: 'weather', state: 'completed' },
    { agent: 'chess', state: 'completed', task_id: first.result.id },
  ])
  const [{ text }] = first.result.artifacts[0].parts
  expect(JSON.parse(text)).toEqual({ text: 'suggest the best chess move\nrain', references: ['rain'] })
  expect(second.result).toEqual(first.result)
}, 60_000)

test.each([
  ['Berlin', 'input-required'],
  ['Rome', 'failed'],
])(
  'a first part about %s that is %s stops the chain',
  async (city, state) => {
    const { result } = await split(asked(city))
    expect(result.status.state).toBe(state)
    expect(result.metadata.chain).toEqual([
      { position: 1, agent: 'weather', task_id: result.id, state },
      { position: 2, agent: 'chess', state: 'not-started' },
    ])
  },
  60_000,
)
