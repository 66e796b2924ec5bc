/**
 * The operator's lists of an agent with 2 million tasks (BENCH_TASKS), 20,000 of which wait for a person: the routes of the
 * agent, and the same lists through the gateway with an operator's token. The 99th percentile must be at most 50 ms.
 * The tasks are written directly to the database. BENCH_QUICK=yes uses a tenth of the tasks.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import { type GatewayApp, startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { z } from 'zod'
import { type OperatorGateway, startOperatorGateway } from '../testing/operator-gateway.ts'
import { AgentUnderTest } from './support/agent-under-test.ts'
import { bringIntoMemory } from './support/file-in-memory.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'
import { contextIdOf, fillTasks, ownerOf, setState } from './support/sqlite-fill.ts'

const quick = process.env['BENCH_QUICK'] === 'yes'
const tasks = Number(process.env['BENCH_TASKS'] ?? (quick ? 200_000 : 2_000_000))
const [times, warmUp, p99MaxMs] = [300, 30, 50]
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-bench-operator-'))
const dataDir = path.join(folder, 'agent')
const file = path.join(dataDir, 'agent.db')

const queries: Record<string, string> = {
  'all owners': 'limit=50',
  'all owners, 200 rows': 'limit=200',
  'a week ago': `limit=50&until=${encodeURIComponent(timeOf(tasks / 2))}`,
  'one owner': `limit=50&owner=${encodeURIComponent(ownerOf(7))}`,
  'one owner, completed': `limit=50&state=completed&owner=${encodeURIComponent(ownerOf(7))}`,
  'failed (1 of 1,000)': 'limit=50&state=failed',
  waiting: 'limit=50&waiting=true',
  'one context': `limit=50&context=${contextIdOf(4000)}`,
}

/** The time of a task, as chosen by `fillTasks`. */
function timeOf(number: number): string {
  return new Date(1.7e12 + number * 10).toISOString()
}

type Figure = { p50Ms: number; p99Ms: number }

try {
  await fill()
  const found = { 'the agent': await ofAgent(), 'the gateway': await throughGateway() }
  for (const [name, figures] of Object.entries(found)) {
    console.log(`\nLists of ${tasks} tasks, answered by ${name}`)
    const rows = Object.entries(figures).map(([query, { p50Ms, p99Ms }]) => [
      query,
      p50Ms.toFixed(1),
      p99Ms.toFixed(1),
    ])
    printTable(['list', 'p50 ms', 'p99 ms'], rows)
    for (const [query, { p99Ms }] of Object.entries(figures))
      expectAtMost(`${name}, ${query}: p99 ms`, p99Ms, p99MaxMs)
  }
  await saveResults('operator-lists', found)
} finally {
  rmSync(folder, { recursive: true })
}

async function fill(): Promise<void> {
  mkdirSync(dataDir)
  await (await openSqliteStore({ file }))[Symbol.asyncDispose]()
  fillTasks(file, 0, tasks)
  setState(file, 'failed', { every: 1000, offset: 1 })
  setState(file, 'input-required', { every: 100, offset: 2 })
}

async function figuresOf(get: (query: string) => Promise<string>): Promise<Record<string, Figure>> {
  const figures: Record<string, Figure> = {}
  for (const [name, query] of Object.entries(queries)) {
    const durations: number[] = []
    for (let time = -warmUp; time < times; time += 1) {
      const began = performance.now()
      const text = await get(query)
      if (time >= 0) durations.push(performance.now() - began)
      if (!text.includes('"task_id"')) throw new Error(`${name}: ${text.slice(0, 300)}`)
    }
    durations.sort((a, b) => a - b)
    const at = (share: number) => durations[Math.floor(durations.length * share)] ?? 0
    figures[name] = { p50Ms: at(0.5), p99Ms: at(0.99) }
  }
  return figures
}

async function ofAgent(): Promise<Record<string, Figure>> {
  await using signer: OperatorGateway = await startOperatorGateway()
  await using agent = await AgentUnderTest.start({ env: { DATA_DIR: dataDir, GATEWAY_URL: signer.url } })
  bringIntoMemory(file)
  const token = () => signer.sign(agent.address, 'tasks.read')
  return await figuresOf(async (query) => getText(`${agent.address}/operator/tasks?${query}`, await token()))
}

async function throughGateway(): Promise<Record<string, Figure>> {
  await using gateway = await startGateway()
  const url = gateway.addresses.public
  await using agent = await AgentUnderTest.start({ env: { DATA_DIR: dataDir, GATEWAY_URL: url } })
  await gateway.registry.register({
    name: 'filled',
    description: 'An agent with many tasks',
    url: agent.address,
    card: { name: 'filled' },
    skills: [],
    owner: 'filled',
    origin: 'supervised',
    verified: false,
    admitted: true,
    admittedBy: 'supervisor',
  })
  bringIntoMemory(file)
  const token = await operatorToken(url)
  return await figuresOf((query) => getText(`${url}/operator/tasks?${query}`, token))
}

function startGateway(): Promise<GatewayApp> {
  const settings = gatewayConfig({ PORT: '0', DATA_DIR: path.join(folder, 'gateway'), LOG_LEVEL: 'silent' })
  return startGatewayApp({ settings, log: makeLog({ level: 'silent', name: 'bench' }) })
}

async function operatorToken(url: string): Promise<string> {
  const text = readFileSync(path.join(folder, 'gateway', 'oauth', 'operator-client.json'), 'utf8')
  const client = z.object({ client_id: z.string(), client_secret: z.string() }).parse(JSON.parse(text))
  const credentials = [client.client_id, client.client_secret].map(encodeURIComponent).join(':')
  const response = await fetch(`${url}/oauth2/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'agent:admin' }),
  })
  return z.object({ access_token: z.string() }).parse(await response.json()).access_token
}

async function getText(url: string, token: string): Promise<string> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
  return response.text()
}
