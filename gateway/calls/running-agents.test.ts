import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { price } from '@parley/tools/testing/paid-agent'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from '../app.ts'
import { gatewayConfig } from '../config.ts'
import { answered, changes, saying, type TestCall, testInterface } from './testing.ts'

let folder: string
let gateway: GatewayApp
let authorization: string

const worker = `async function* ({ text, ask, task, history }) {
  if (text === 'ask') return yield ask('Which city?')
  if (text === 'parts') { yield 'Ra'; yield 'in'; return }
  if (text === 'killed') await new Promise((resolve) => setTimeout(resolve, 300))
  if (text === 'killed' && task.starts === 1) process.kill(process.pid, 'SIGKILL')
  yield history.length + ' ' + text
}`

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-calls-'))
  await addAgent('worker', worker)
  await addAgent('seller', '({ text }) => text', `executionCost: ${JSON.stringify(price)}`)
  const DATA_DIR = path.join(folder, 'data')
  const home = { PATH: process.env['PATH'], HOME: folder, PORT: '0', LOG_LEVEL: 'silent', DATA_DIR }
  gateway = await startGatewayApp({
    settings: gatewayConfig(home),
    log: makeLog({ level: 'silent', name: 'test' }),
    agentsDir: path.join(folder, 'agents'),
    testInterface,
  })
  await gateway.supervisor?.settled()
  const client = JSON.parse(await readFile(path.join(DATA_DIR, 'dev-client.json'), 'utf8')) as Record<
    string,
    string
  >
  const { token_url: tokenUrl = '', ...credentials } = client
  const body = new URLSearchParams({ ...credentials, grant_type: 'client_credentials' })
  const answer = (await (await fetch(tokenUrl, { method: 'POST', body })).json()) as { access_token: string }
  authorization = `Bearer ${answer.access_token}`
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

async function addAgent(name: string, handle: string, more = ''): Promise<void> {
  await mkdir(path.join(folder, 'agents', name), { recursive: true })
  const define = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
  await writeFile(
    path.join(folder, 'agents', name, 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(define)}
     export default defineAgent({ name: '${name}', description: 'Works', handle: ${handle},
       skills: [{ id: 'work', name: 'Work', description: 'Works' }], ${more} })`,
  )
}

const to = (text: string) => saying(text, { agent: 'worker' })
const sender = () => ({ authorization, gateway: gateway.addresses.public })
const call = async (sent: TestCall) => (await answered(sent, sender())).json
const textOf = (task: { artifacts: { parts: { text: string }[] }[] }) => task.artifacts[0]?.parts[0]?.text

test('a call returns the ended task of the agent', async () => {
  const { task, agent } = await call({ send: to('work'), waitMs: 20_000 })
  expect([agent, task.status.state, textOf(task)]).toEqual(['worker', 'completed', '1 work'])
})

test('an answer to a paused task continues it', async () => {
  const { task } = await call({ send: to('ask'), waitMs: 20_000 })
  expect([task.status.state, task.status.message.parts[0].text]).toEqual(['input-required', 'Which city?'])
  const message = { parts: [{ kind: 'text' as const, text: 'Oslo' }], taskId: task.id }
  const { task: ended } = await call({ send: { agent: 'worker', message }, waitMs: 20_000 })
  expect([ended.id, ended.status.state]).toEqual([task.id, 'completed'])
  expect(textOf(ended)).toContain('Oslo')
})

test('a stream has the deltas of the agent and ends with its task', async () => {
  const seen = await changes({ stream: to('parts') }, sender())
  expect(seen[0]).toMatchObject({ kind: 'task', agent: 'worker' })
  expect(seen.at(-1)).toMatchObject({ kind: 'status', status: { state: 'completed' } })
  expect(seen.filter(({ last }) => last === true).map(({ parts }) => parts[0].text)).toEqual(['Rain'])
})

test('a stream continues after its agent was killed, until the agent has run the task again', async () => {
  const seen = await changes({ stream: to('killed') }, sender())
  const { task, status = task.status } = seen.at(-1)
  expect([seen[0].kind, status.state]).toEqual(['task', 'completed'])
})

test('an unpaid call of a paid agent fails with the terms, and creates no task', async () => {
  const { status, json, headers } = await answered(
    { send: saying('work', { agent: 'seller' }), waitMs: 1000 },
    sender(),
  )
  expect([status, json.error.code, json.error.data.error]).toEqual([402, -32046, 'payment_required'])
  const terms = JSON.parse(Buffer.from(headers.get('payment-required') ?? '', 'base64').toString('utf8'))
  expect(terms).toMatchObject({ x402Version: 2, accepts: [{ scheme: 'exact' }] })
})
