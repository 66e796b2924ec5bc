import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { agentNames, writeAgents } from './agents.ts'
import { send, textAt } from './http.ts'

const startLimitMs = 90_000
const corsOrigin = 'https://app.example'

/** A gateway with the agents of the record, and a second gateway without agents. */
export interface Deployment extends AsyncDisposable {
  gateway: string
  /** Direct URLs of the agents, by name. */
  agents: Record<string, string>
  /** URL of a gateway in production mode, without an identity and with a rate limit. */
  bare: string
  initialToken: string
  operator: { clientId: string; clientSecret: string }
  developer: { clientId: string; clientSecret: string }
  /** URLs and folders, with the names that replace them in a record. */
  literals: [value: string, name: string][]
}

/** Starts `cli/bin.mjs` of the checkout with a new data folder and unused ports. */
export async function startDeployment(checkout: string, receiverPort: number): Promise<Deployment> {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-exchanges-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const agentsDir = path.join(folder, 'agents')
  await writeAgents(agentsDir, checkout)
  const port = await freePorts(agentNames.length + 2)
  const barePort = port + agentNames.length + 1
  const gateway = `http://127.0.0.1:${port}`
  const bare = `http://127.0.0.1:${barePort}`
  const start = (args: string[], env: Record<string, string>) => {
    const child = startProcess(checkout, folder, args, env)
    stack.defer(() => stop(child.process))
    return child
  }
  const data = path.join(folder, 'data')
  const full = start(['up', '--agents', agentsDir], { ...settings(), PORT: String(port), DATA_DIR: data })
  const production = { ...bareSettings, PORT: String(barePort), DATA_DIR: path.join(folder, 'bare') }
  const other = start(['gateway'], production)
  const ready = (url: string) => untilReady(url, [full, other])
  await Promise.all([
    ...agentNames.map((name) => ready(`${gateway}/agents/${name}/health`)),
    ready(`${bare}/health`),
  ])
  const agents: Record<string, string> = {}
  for (let at = 1; at <= agentNames.length; at++) {
    const url = `http://127.0.0.1:${port + at}`
    agents[textAt(await send({ url: `${url}/.well-known/agent.json` }), 'name')] = url
  }
  const operator = await clientIn(path.join(data, 'oauth', 'operator-client.json'))
  const developer = await clientIn(path.join(data, 'dev-client.json'))
  const initialToken = (await readFile(path.join(data, 'oauth', 'initial-access-token'), 'utf8')).trim()
  const running = stack.move()
  return {
    gateway,
    agents,
    bare,
    initialToken,
    operator,
    developer,
    literals: [
      [gateway, 'gateway'],
      [`127.0.0.1:${port}`, 'gateway host'],
      [bare, 'bare gateway'],
      [`127.0.0.1:${barePort}`, 'bare gateway host'],
      [`127.0.0.1:${receiverPort}`, 'receiver host'],
      [`http://127.0.0.1:${receiverPort}`, 'receiver'],
      ...Object.entries(agents).flatMap(([name, url]): [string, string][] => [
        [url, name],
        [url.slice('http://'.length), `${name} host`],
      ]),
      [folder, 'folder'],
      [checkout, 'checkout'],
    ],
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

function settings(): Record<string, string> {
  return {
    SERVICE_GATEWAY_DID_SEED: Buffer.alloc(32, 7).toString('base64'),
    SERVICE_GATEWAY_AUTHOR: 'recorder',
    SERVICE_GATEWAY_NAME: 'gateway',
    CORS_ORIGINS: corsOrigin,
    ROUTE_LEARNING: 'no',
    // Agents are embedded some time after they are registered, and rounding differs between processors.
    SENTENCE_ENCODER: 'no',
  }
}

const bareSettings = { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes', RATE_LIMIT_PER_MINUTE: '300' }

interface Started {
  process: ChildProcess
  output: () => string
}

function startProcess(checkout: string, cwd: string, args: string[], env: Record<string, string>): Started {
  const { PATH = '', HOME = '', XDG_CACHE_HOME } = process.env
  const caches = XDG_CACHE_HOME === undefined ? {} : { XDG_CACHE_HOME }
  const child = spawn(process.execPath, [path.join(checkout, 'cli', 'bin.mjs'), ...args], {
    cwd,
    env: { PATH, HOME, ...caches, LOG_LEVEL: 'warn', HOST: '127.0.0.1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  return { process: child, output: () => Buffer.concat(chunks).toString('utf8') }
}

async function untilReady(url: string, processes: readonly Started[]): Promise<void> {
  const until = Date.now() + startLimitMs
  while (Date.now() < until) {
    const ended = processes.find(({ process: { exitCode } }) => exitCode !== null)
    if (ended !== undefined) throw new Error(`a process ended at its start:\n${ended.output()}`)
    const answer = await send({ url }).catch(() => undefined)
    if (answer?.status === 200) return
    await wait(50)
  }
  throw new Error(`${url} is not ready:\n${processes.map(({ output }) => output()).join('\n')}`)
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const kill = setTimeout(() => child.kill('SIGKILL'), 15_000)
  await ended
  clearTimeout(kill)
}

async function clientIn(file: string): Promise<{ clientId: string; clientSecret: string }> {
  const answer = { status: 0, statusText: '', headers: [], body: await readFile(file) }
  return { clientId: textAt(answer, 'client_id'), clientSecret: textAt(answer, 'client_secret') }
}

/** The first of `count` consecutive free ports. All have five digits, so that lengths are the same in every run. */
async function freePorts(count: number): Promise<number> {
  for (;;) {
    const first = 20_000 + Math.floor(Math.random() * 10_000)
    const free = await Promise.all(Array.from({ length: count }, (_, i) => isFree(first + i)))
    if (free.every(Boolean)) return first
  }
}

function isFree(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = net.createServer()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  return promise
}
