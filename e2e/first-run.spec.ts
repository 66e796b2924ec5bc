import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import { Deployment } from './harness/deployment.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

let deployment: Deployment

test.beforeAll(async ({ backends }) => {
  deployment = await Deployment.start(backends)
})
test.afterAll(async () => {
  await deployment?.remove()
})

interface WireTask {
  id: string
  status: { state: string; message?: { parts: { text?: string }[] } }
  artifacts: { name: string; parts: { text?: string; file?: { name: string; mime_type: string } }[] }[]
}

const tokens: string[] = []
async function token(): Promise<string> {
  tokens[0] ??= (await deployment.parley('token')).stdout.trim()
  return tokens[0]
}

async function rpc(agent: string, method: string, params: object): Promise<{ status: number; body: Rpc }> {
  const response = await fetch(`${deployment.url}/agents/${agent}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
  })
  return { status: response.status, body: (await response.json()) as Rpc }
}
interface Rpc {
  result?: WireTask
  error?: { code: number; data: Record<string, unknown> }
}

test('npm start runs the gateway and every agent that needs no account', async () => {
  const response = await fetch(`${deployment.url}/registry/agents`)
  const { agents, total } = (await response.json()) as {
    agents: { slug: string; status: string }[]
    total: number
  }
  // The folder also has the agents that a user of this checkout has added, as the README suggests.
  const folders = readdirSync(path.join(import.meta.dirname, '..', 'agents'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'assistant')
    .map(({ name }) => name)
    .toSorted()
  expect(folders).toEqual(
    expect.arrayContaining(['calculator', 'data-analyst', 'document-maker', 'forecaster', 'summarizer']),
  )
  expect(agents.map(({ slug, status }) => [slug, status])).toEqual(folders.map((slug) => [slug, 'ready']))
  expect(total).toBe(folders.length)
  expect((await fetch(`${deployment.url}/health`)).status).toBe(200)
  expect(await (await fetch(`${deployment.url}/metrics`)).text()).toContain('http_requests_total')
})

test('the printed curl command returns a Task in the state submitted', async () => {
  const { stdout, code } = await deployment.shell(deployment.curlLine)
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toMatchObject({
    jsonrpc: '2.0',
    result: { kind: 'task', status: { state: 'submitted' } },
  })
})

test('a request without a token gets 401 and -32009 with instructions to authenticate', async () => {
  const body = '{"jsonrpc":"2.0","id":"7","method":"tasks/list"}'
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(`${deployment.url}/agents/calculator/`, { method: 'POST', headers, body })
  expect(response.status).toBe(401)
  expect(response.headers.get('www-authenticate')).toContain('Bearer')
  expect(await response.json()).toMatchObject({ id: '7', error: { code: -32009 } })
})

test('parley agents lists the agents', async () => {
  const { stdout, code } = await deployment.parley('agents')
  expect(code).toBe(0)
  for (const name of ['calculator', 'data-analyst', 'document-maker', 'summarizer'])
    expect(stdout).toContain(name)
})

test('parley send streams an answer', async () => {
  const { stdout, code } = await deployment.parley('send', 'calculator', '12 inch in cm')
  expect(code).toBe(0)
  expect(stdout).toContain('30.48')
})

test('a new user pays in test money, with a wallet created on first use', async () => {
  const csv = path.join(deployment.dataDir, 'visits.csv')
  const rows = Array.from(
    { length: 24 },
    (_, i) => `${2024 + Math.floor(i / 12)}-${String((i % 12) + 1).padStart(2, '0')},${100 + i}`,
  )
  writeFileSync(csv, ['month,visits', ...rows].join('\n'))
  const command = [
    'send',
    'forecaster',
    '--file',
    csv,
    'the next 3 months',
    '--out',
    path.join(deployment.dataDir, 'paid'),
  ]
  const unpaid = await deployment.parley(...command)
  expect(unpaid.code).toBe(1)
  expect(unpaid.stderr).toContain('forecaster charges 0.01 USDC')
  const paid = await deployment.parley(...command, '--pay', '--yes')
  expect(paid.code, paid.stderr).toBe(0)
  expect(paid.stdout).toContain('visits is expected at')
  expect((await deployment.parley('wallet')).stdout).toContain('999.99 USDC')
})

test('parley send --file saves statistics and a chart as SVG and PNG in the --out folder', async () => {
  const folder = path.join(deployment.dataDir, 'files')
  const csv = path.join(deployment.dataDir, 'sales.csv')
  const rows = Array.from(
    { length: 12 },
    (_, i) => `2026-${String(i + 1).padStart(2, '0')},${100 + i * 20},${7 + (i % 3)}`,
  )
  writeFileSync(csv, ['month,revenue,returns', ...rows].join('\n'))
  const sent = await deployment.parley(
    'send',
    'data-analyst',
    '--file',
    csv,
    '--out',
    folder,
    'what stands out?',
  )
  expect(sent.code, sent.stderr).toBe(0)
  expect(sent.stdout).toContain('revenue')
  const saved = readdirSync(folder)
  expect(saved.filter((name) => name.endsWith('.svg'))).toHaveLength(1)
  const png = saved.find((name) => name.endsWith('.png')) ?? ''
  expect(readFileSync(path.join(folder, png)).subarray(1, 4).toString()).toBe('PNG')
})

test('a task pauses with a question, and the next message continues it', async () => {
  const csv = 'day,revenue,returns\n1,10,3\n2,20,1\n3,15,2\n4,30,5\n'
  const command = await deployment.parley(
    'send',
    'data-analyst',
    '--json',
    `draw a chart of the column\n${csv}`,
  )
  const task = lastTask(command.stdout)
  expect(task.status.state).toBe('input-required')
  const answered = await deployment.parley('send', 'data-analyst', '--json', '--task', task.id, 'returns')
  const ended = lastTask(answered.stdout)
  expect(ended.id).toBe(task.id)
  expect(ended.status.state).toBe('completed')
  expect(JSON.stringify(ended.artifacts)).toContain('returns')
})

test('cancel ends a task, and a second cancel returns -32002', async () => {
  const csv = 'day,revenue,returns\n1,10,3\n2,20,1\n3,15,2\n'
  const command = await deployment.parley(
    'send',
    'data-analyst',
    '--json',
    `draw a chart of the column\n${csv}`,
  )
  const { id } = lastTask(command.stdout)
  expect((await rpc('data-analyst', 'tasks/cancel', { task_id: id })).body.result?.status.state).toBe(
    'canceled',
  )
  expect(await rpc('data-analyst', 'tasks/cancel', { task_id: id })).toMatchObject({
    status: 400,
    body: { error: { code: -32002 } },
  })
})

test('document-maker converts Markdown to a PDF artifact', async () => {
  const made = await deployment.parley('send', 'document-maker', '--json', '# Hello\n\nA page.')
  const file = lastTask(made.stdout)
    .artifacts.flatMap(({ parts }) => parts)
    .find(({ file }) => file)?.file
  expect(file).toMatchObject({ mime_type: 'application/pdf' })
})

const calculators = () => deployment.processes().filter((id) => commandLine(id).includes('agents/calculator'))
const healthOf = async (agent: string) => (await fetch(`${deployment.url}/agents/${agent}/health`)).status

test('a killed agent is restarted, and its address returns 503 immediately in the meantime', async () => {
  const pids = calculators()
  expect(pids.length).toBeGreaterThan(0)
  for (const pid of pids) process.kill(pid, 'SIGKILL')
  await expect(async () => expect(await healthOf('calculator')).toBe(503)).toPass({ intervals: [20] })
  await expect(async () => {
    expect(await healthOf('calculator')).toBe(200)
    expect(calculators()).toHaveLength(pids.length)
  }).toPass()
})

test('SIGTERM ends all processes with exit code 0', async () => {
  expect(deployment.processes().length).toBeGreaterThan(4)
  expect(await deployment.stop()).toBe(0)
  await expect.poll(() => deployment.processes()).toEqual([])
})

function commandLine(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
}

/** Finds the task in the output of `--json`: the last JSON value with an id. Each line contains one value. */
function lastTask(stdout: string): WireTask {
  const values = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as WireTask & { task?: WireTask })
  const task = values
    .map((value) => value.task ?? value)
    .findLast(({ id, artifacts }) => id !== undefined && artifacts !== undefined)
  if (task === undefined) throw new Error(`no task in ${stdout}`)
  return task
}
