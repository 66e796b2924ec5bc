/**
 * Time from `npm start` until every agent has answered a real message: the last of the messages that are sent to each
 * agent through the gateway, every 100 ms until the agent accepts one, has left the states `submitted` and `working`.
 * Also the time until the table of addresses is printed. Dependencies are installed. The first start creates the DATA_DIR
 * and fills the compile caches of the gateway and the agents; it is printed as 0 and does not count.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { median, quick } from './support/measure.ts'
import { checkTarget, printTable, saveResults } from './support/report.ts'

const starts = quick ? 3 : 5
const limitMs = 60_000
/** Shorter intervals would slow down the start that they measure. */
const retryMs = 100
const root = path.join(import.meta.dirname, '..', '..')
/** For every agent of `agents/` that starts without additional settings. */
const messages: Record<string, string> = {
  calculator: 'What is 2 + 2?',
  'data-analyst': 'Sales by month\n\nmonth,sales\n2026-01,10\n2026-02,12\n2026-03,17\n',
  'document-maker': '# Report\n\nOne paragraph.',
  // It answers with its price, because the message pays nothing.
  forecaster: 'date,value\n2026-01-01,1\n2026-01-02,2\n',
  summarizer:
    'Agents answer messages. A gateway routes the messages to them. Each agent keeps its own tasks.',
}

interface Start {
  answeredS: number
  printedS: number
  /** Seconds until each agent had answered. */
  agents: Record<string, number>
}

const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
const all: Start[] = []
try {
  for (let start = 0; start <= starts; start += 1) all.push(await measureStart())
} finally {
  await rm(dataDir, { recursive: true, force: true })
}
const measured = all.slice(1)
const names = Object.keys(messages)
printTable(
  ['start', 's until every agent has answered', 's until the table', ...names],
  all.map(({ answeredS, printedS, agents }, start) => [
    String(start),
    ...[answeredS, printedS, ...names.map((name) => agents[name] ?? Number.NaN)].map((s) => s.toFixed(2)),
  ]),
)
const seconds = measured.map(({ answeredS }) => answeredS)
checkTarget('npm start to ready', median(seconds))
await saveResults('start', { first: all[0], measured, median: median(seconds) })

async function measureStart(): Promise<Start> {
  const port = await freePort()
  const began = performance.now()
  const sinceBegan = () => (performance.now() - began) / 1000
  const child = spawn('npm', ['start'], {
    cwd: root,
    env: { ...process.env, PORT: String(port), DATA_DIR: dataDir, LOG_LEVEL: 'error' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const over = AbortSignal.timeout(limitMs)
  try {
    const printed = tablePrinted(child, over).then(sinceBegan)
    const gateway = `http://127.0.0.1:${port}`
    const token = await patiently(() => tokenFrom(dataDir, gateway), over)
    const agents: Record<string, number> = {}
    const answering = Object.entries(messages).map(async ([name, text]) => {
      await answerOf(`${gateway}/agents/${name}/`, token, text, over)
      agents[name] = sinceBegan()
    })
    const [printedS] = await Promise.all([printed, ...answering])
    return { answeredS: Math.max(...Object.values(agents)), printedS, agents }
  } finally {
    child.stdout.resume()
    child.kill('SIGTERM')
    await ended
  }
}

async function tablePrinted({ stdout }: ChildProcess, over: AbortSignal): Promise<void> {
  if (stdout === null) throw new Error('npm start has no output')
  let text = ''
  for await (const chunk of stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    text += String(chunk)
    if (text.includes('curl ')) return
    if (over.aborted) break
  }
  throw new Error(`npm start did not become ready:\n${text}`)
}

async function tokenFrom(dataDir: string, gateway: string): Promise<string> {
  const client: unknown = JSON.parse(await readFile(path.join(dataDir, 'dev-client.json'), 'utf8'))
  const { client_id, client_secret } = client as Record<string, string>
  const response = await fetch(`${gateway}/oauth2/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${client_id}:${client_secret}`)}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  const { access_token: token } = (await response.json()) as { access_token?: string }
  if (token === undefined) throw new Error(`no token: status ${response.status}`)
  return token
}

/** Resolves when the agent has answered with more than the acceptance of the message. */
async function answerOf(url: string, token: string, text: string, over: AbortSignal): Promise<void> {
  const message = { role: 'user', kind: 'message', messageId: randomUUID(), parts: [{ kind: 'text', text }] }
  const task = await patiently(() => call(url, token, 'message/send', { message }), over)
  if (task === 'payment-required') return
  let { state } = task.status
  while (state === 'submitted' || state === 'working') {
    await wait(retryMs, undefined, { signal: over })
    const current = await call(url, token, 'tasks/get', { task_id: task.id })
    if (current !== 'payment-required') state = current.status.state
  }
  if (state === 'failed' || state === 'rejected') throw new Error(`${url} answered with the state ${state}`)
}

interface Task {
  id: string
  status: { state: string }
}

async function call(
  url: string,
  token: string,
  method: string,
  params: object,
): Promise<Task | 'payment-required'> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
  })
  const text = await response.text()
  if (response.status === 402) return 'payment-required'
  const { result } = (response.ok ? JSON.parse(text) : {}) as { result?: Task }
  if (result === undefined) throw new Error(`${method} at ${url}: ${text}`)
  return result
}

/** Repeats a call until it succeeds. */
async function patiently<T>(attempt: () => Promise<T>, over: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (over.aborted) throw error
    }
    await wait(retryMs)
  }
}

async function freePort(): Promise<number> {
  await using server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port is free')
  return address.port
}
