import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { compileCache } from '@parley/tools/testing/killable-agent'
import { freePort } from '@parley/tools/testing/port'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

let folder: string
const children: ChildProcess[] = []

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-main-'))
  await mkdir(path.join(folder, 'agents', 'echo'), { recursive: true })
  await writeFile(
    path.join(folder, 'agents', 'echo', 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(urlOf('shared/agent/author/define-agent.ts'))}
     const skill = { id: 'echo', name: 'Echo', description: 'Repeats', examples: ['Say it'] }
     export default defineAgent({ name: 'echo', description: 'Echo', skills: [skill], handle: ({ text }) => text })`,
  )
})

afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})

const urlOf = (file: string) => pathToFileURL(path.resolve(file)).href

/** Runs the gateway as a separate process. */
function run(env: NodeJS.ProcessEnv, supervise = true) {
  const script = `const { runGateway } = await import(${JSON.stringify(urlOf('gateway/main.ts'))})
    process.exitCode = await runGateway({ supervise: ${supervise}, agentsDir: ${JSON.stringify(path.join(folder, 'agents'))} })`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      DATA_DIR: 'data',
      PORT: '0',
      LOG_LEVEL: 'warn',
      ...compileCache,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  const said = { out: '', err: '' }
  const { promise: ready, resolve } = Promise.withResolvers<void>()
  child.stdout.on('data', (text: Buffer) => {
    said.out += text.toString()
    if (said.out.includes('OAuth server')) resolve()
  })
  child.stderr.on('data', (text: Buffer) => (said.err += text.toString()))
  const ended = once(child, 'close').then(([code]) => code as number | null)
  return { child, said, ready, ended }
}

/** Process ids of the agents of this test. */
function agentPids(): number[] {
  const names = process.platform === 'linux' ? readdirSync('/proc') : []
  const pids = names.filter((name) => /^\d+$/.test(name))
  return pids.filter((pid) => commandOf(pid).includes(path.join(folder, 'agents'))).map(Number)
}

function commandOf(pid: string): string {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return command.includes('agent-process') ? command : ''
  } catch {
    return ''
  }
}

test('the gateway prints the table and the curl command on stdout, and SIGTERM stops everything with exit code 0', async () => {
  const gateway = run({})
  await gateway.ready
  expect(gateway.said.out).toMatch(/^echo +ready +http:\/\/127\.0\.0\.1:\d+\/agents\/echo/m)
  expect(gateway.said.out).toMatch(/^curl .*\$\(DATA_DIR='.*' npx parley token\)/m)
  gateway.child.kill('SIGTERM')
  expect(await gateway.ended).toBe(0)
  expect(agentPids()).toEqual([])
  expect(gateway.said.err).toBe('')
})

test('a gateway whose storage is busy reports that it is ready once /health returns 200', async () => {
  const go = path.join(folder, 'agents', 'echo', 'go')
  // The first start of the agents fails while the database is locked.
  await writeFile(
    path.join(folder, 'agents', 'echo', 'agent.js'),
    `import { existsSync } from 'node:fs'
     while (!existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setTimeout(resolve, 20))
     throw new Error('this agent does not start')`,
  )
  const port = await freePort()
  const health = () =>
    fetch(`http://127.0.0.1:${port}/health`).then(
      ({ status }) => status,
      () => 0,
    )
  const gateway = run({ PORT: String(port) })
  await vi.waitUntil(async () => (await health()) === 200, { timeout: 30_000, interval: 50 })
  using database = new DatabaseSync(path.join(folder, 'data', 'gateway.db'))
  database.exec('BEGIN IMMEDIATE')
  await writeFile(go, '')
  await vi.waitUntil(() => gateway.said.err.includes('this agent does not start'), { timeout: 30_000 })
  for (let seen = 0; seen < 3; seen += 1) expect(await health()).toBe(503)
  expect(gateway.said.out).toBe('')
  database.exec('ROLLBACK')
  await gateway.ready
  expect(await health()).toBe(200)
  expect(gateway.said.out).toMatch(/^gateway +ready/m)
})

test.runIf(process.platform === 'linux')('no agent survives a gateway killed with SIGKILL', async () => {
  const gateway = run({})
  await gateway.ready
  // An isolated agent has a launcher, whose command also names the agent.
  expect(agentPids().length).toBeGreaterThan(0)
  gateway.child.kill('SIGKILL')
  await gateway.ended
  while (agentPids().length > 0) await new Promise((resolve) => setTimeout(resolve, 50))
  const again = run({})
  await again.ready
  expect(again.said.out).toMatch(/^echo +ready/m)
})

test.runIf(process.platform === 'linux')(
  'a task is found after the gateway was killed right after its response',
  async () => {
    const contextId = randomUUID()
    const accepted: string[] = []
    for (let start = 0; start < 3; start += 1) {
      const gateway = run({ PORT: String(await freePort()) })
      await gateway.ready
      const url = /https?:\/\/[^\s/]+/.exec(gateway.said.out)?.[0] ?? ''
      const call = await callerOf(url)
      for (const id of accepted)
        expect(await call('tasks/get', { task_id: id })).toMatchObject({
          result: { id, context_id: contextId },
        })
      const parts = [{ kind: 'text', text: 'Say it' }]
      const message = {
        role: 'user',
        kind: 'message',
        message_id: randomUUID(),
        context_id: contextId,
        parts,
      }
      const sent = await call('message/send', { message })
      gateway.child.kill('SIGKILL')
      expect(sent).toMatchObject({ result: { context_id: contextId } })
      accepted.push(String(sent.result['id']))
      await gateway.ended
      while (agentPids().length > 0) await new Promise((resolve) => setTimeout(resolve, 50))
    }
  },
)

/** Returns a function that calls the gateway with a token for the client in its folder. */
async function callerOf(url: string) {
  const file = path.join(folder, 'data', 'oauth', 'operator-client.json')
  const { client_id, client_secret, token_url } = JSON.parse(await readFile(file, 'utf8'))
  const form = { grant_type: 'client_credentials', scope: 'agent:read agent:write', client_id, client_secret }
  const answer = await fetch(token_url, { method: 'POST', body: new URLSearchParams(form) })
  const { access_token: token } = (await answer.json()) as { access_token: string }
  return async (method: string, params: object) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
    })
    return (await response.json()) as { result: Record<string, unknown> }
  }
}

test('a second gateway on the same data folder exits with a message and code 1', async () => {
  const first = run({}, false)
  await first.ready
  const second = run({}, false)
  expect(await second.ended).toBe(1)
  expect(second.said.err).toMatch(/^parley: The database .* is open in another process\. .*\n$/)
  expect(second.said.out).toBe('')
})

test('a key file that others can read is refused with a message that names chmod, for agents in the table', async () => {
  const first = run({})
  await first.ready
  first.child.kill('SIGTERM')
  await first.ended
  const agentKey = path.join(folder, 'data', 'agents', 'echo', 'agent.key.json')
  await chmod(agentKey, 0o644)
  const second = run({})
  await second.ready
  expect(second.said.out).toMatch(/^echo +not running +.*Run "chmod 600 .*agent\.key\.json"/m)
  second.child.kill('SIGTERM')
  await second.ended
  for (const name of ['oauth-keys.json', 'operator-client.json']) {
    const file = path.join(folder, 'data', 'oauth', name)
    await chmod(file, 0o644)
    const refused = run({}, false)
    expect(await refused.ended).toBe(1)
    expect(refused.said.err).toMatch(/^parley: .* holds a secret .* Run "chmod 600 .*\n$/)
    expect(refused.said.err).toContain(file)
    await chmod(file, 0o600)
  }
})

test('the file mode of the development client is restored at startup with a warning', async () => {
  const first = run({}, false)
  await first.ready
  first.child.kill('SIGTERM')
  await first.ended
  const file = path.join(folder, 'data', 'dev-client.json')
  await chmod(file, 0o644)
  const second = run({}, false)
  await second.ready
  expect(second.said.err).toContain('was readable by other users')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('a port that is in use causes a message and exit code 1', async () => {
  const taken = net.createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as net.AddressInfo
  const gateway = run({ PORT: String(port) })
  expect(await gateway.ended).toBe(1)
  expect(gateway.said.err).toBe(
    `parley: Port ${port} is in use: stop the process that uses it, or set another PORT.\n`,
  )
  taken.close()
})

test('each invalid setting causes one message without secret values', async () => {
  const gateway = run({ PORT: 'x', LOG_LEVEL: 'loud', OAUTH_CLIENT_SECRET: 'hush' })
  expect(await gateway.ended).toBe(1)
  expect(gateway.said.err).toMatch(/^parley: PORT .*\nLOG_LEVEL .*\n$/)
  expect(gateway.said.err).not.toContain('hush')
})

test('in production the embedded OAuth server must be enabled explicitly', async () => {
  const gateway = run({ NODE_ENV: 'production' }, false)
  expect(await gateway.ended).toBe(1)
  expect(gateway.said.err).toContain('PARLEY_EMBEDDED_OAUTH=yes')
})
