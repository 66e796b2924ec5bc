/**
 * The bytes that a request of the hot path allocates. Times differ between machines; these figures do not, so that a test can
 * compare them (`budget.test.ts`). Servers run without the optimizing compilers, because the moment at which they
 * remove allocations depends on the time.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { ServerProcess } from '../bench/servers/server-process.ts'
import { callOf, sendParams } from '../bench/support/agent-under-test.ts'
import { Connection } from '../bench/support/connection.ts'
import { httpRequest } from '../bench/support/load.ts'
import { median } from '../bench/support/measure.ts'
import { tokenOf } from '../bench/support/tokens.ts'
import type { Probe } from './probe.ts'

/** Allocated bytes per request. */
export type Costs = Record<string, number>

const root = path.join(import.meta.dirname, '../..')
const bench = path.join(root, 'tools/bench')
const [warmUp, windows, requestsPerWindow] = [150, 3, 80]

/** New objects stay in a space of this size until the next signal. */
const newSpaceMb = 256
const nodeFlags = [
  '--expose-gc',
  '--no-opt',
  '--no-maglev',
  '--no-incremental-marking',
  '--no-memory-reducer',
  `--min-semi-space-size=${newSpaceMb}`,
  `--max-semi-space-size=${newSpaceMb}`,
  '--import',
  new URL('probe.ts', import.meta.url).href,
  '--disable-warning=ExperimentalWarning',
]

export async function measureCosts(): Promise<Costs> {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-budget-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const oauth = stack.use(await start([`${bench}/servers/oauth-process.ts`]))
  return { ...(await agentCosts(folder, oauth)), ...(await gatewayCosts(folder, oauth)) }
}

const start = (args: string[], env: Record<string, string> = {}, flags: string[] = []) =>
  ServerProcess.start({ args, core: 'any', env, nodeFlags: flags, startLimitMs: 30_000 })

async function agentCosts(folder: string, oauth: ServerProcess): Promise<Costs> {
  const probe = path.join(folder, 'agent-probe')
  const program = [path.join(root, 'shared/agent/server/agent-process.ts'), `${bench}/support/echo`]
  const env = {
    PROBE_FILE: probe,
    PORT: '0',
    LOG_LEVEL: 'info',
    RATE_LIMIT_PER_MINUTE: '0',
    DATA_DIR: path.join(folder, 'agent'),
    OAUTH_INTROSPECTION_URL: `${oauth.address}/introspect`,
    OAUTH_CLIENT_METADATA_URL: `${oauth.address}/clients/{client_id}`,
    OAUTH_CLIENT_ID: 'agent',
    OAUTH_CLIENT_SECRET: 'secret',
  }
  await using agent = await start(program, env, nodeFlags)
  const server = { agent, probe }
  // The response waits for the task, so that a request includes its whole life.
  const waits = () => callOf(0, 'message/send', { ...sendParams(), configuration: { wait_ms: 10_000 } })
  const send = await costOf(server, waits, '"state":"completed"')
  const connection = await Connection.open(agent.address)
  const { body } = await connection.ask(Buffer.from(waits()))
  connection.close()
  const { id } = (JSON.parse(body) as { result: { id: string } }).result
  const get = () => callOf(0, 'tasks/get', { task_id: id })
  return {
    'agent: message/send until completed': send,
    'agent: tasks/get': await costOf(server, get, '"state":"completed"'),
  }
}

async function gatewayCosts(folder: string, oauth: ServerProcess): Promise<Costs> {
  const probe = path.join(folder, 'gateway-probe')
  await using upstream = await start([`${bench}/servers/upstream-process.ts`])
  const env = {
    PROBE_FILE: probe,
    UPSTREAM: upstream.address,
    OAUTH: oauth.address,
    DATA_DIR: path.join(folder, 'gateway'),
  }
  await using gateway = await start([`${bench}/servers/gateway-process.ts`], env, nodeFlags)
  const server = { agent: gateway, probe }
  const headers = { Authorization: `Bearer ${tokenOf(0)}` }
  const request = (to: string) => () => {
    const body = { jsonrpc: '2.0', id: '1', method: 'message/send', params: sendParams() }
    return httpRequest({ path: to, headers, body })
  }
  return {
    'gateway: message/send to /agents/{slug}/': await costOf(
      server,
      request('/agents/upstream/'),
      '"kind":"task"',
    ),
    'gateway: message/send to /': await costOf(server, request('/'), '"kind":"task"'),
  }
}

/** Sends requests one after the other and returns the medians of several windows. */
async function costOf(
  { agent, probe }: { agent: ServerProcess; probe: string },
  request: () => string,
  mustHold: string,
): Promise<number> {
  const connection = await Connection.open(agent.address)
  const send = async (count: number) => {
    const requests = Array.from({ length: count }, () => Buffer.from(request()))
    for (const bytes of requests) {
      const answer = await connection.ask(bytes)
      if (!answer.ok || !answer.body.includes(mustHold))
        throw new Error(`refused: ${answer.body.slice(0, 300)}`)
    }
  }
  await send(warmUp)
  const costs: number[] = []
  for (let attempt = 0; attempt < 2 * windows && costs.length < windows; attempt += 1) {
    const { after } = await probed(agent.pid, probe)
    await send(requestsPerWindow)
    const { before, collections } = await probed(agent.pid, probe)
    if (collections > 0) continue
    costs.push((before - after) / requestsPerWindow)
  }
  connection.close()
  if (costs.length === 0) throw new Error('Garbage collections ran during all measurements.')
  return Math.round(median(costs))
}

/** @throws Error if the server does not respond to the signal */
async function probed(pid: number, file: string): Promise<Probe> {
  rmSync(file, { force: true })
  process.kill(pid, 'SIGUSR2')
  for (let waited = 0; waited < 2000; waited += 1) {
    if (existsSync(file)) return JSON.parse(readFileSync(file, 'utf8')) as Probe
    await pause(5)
  }
  throw new Error('The server did not write its probe.')
}
