import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseEnv } from 'node:util'
import { type GatewayApp, startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli, temporaryFolder } from './testing.ts'

let folder: string
let gateway: GatewayApp
let env: Record<string, string>
let agent: ChildProcess | undefined
const inHouse = () => path.join(folder, 'house')
const outside = () => path.join(folder, 'outside')

const cli = (...argv: string[]) => runCli(argv, { cwd: inHouse(), env })
const cliOutside = (...argv: string[]) => runCli(argv, { cwd: outside(), env: { DATA_DIR: '.parley' } })

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-joining-'))
  await mkdir(inHouse())
  await mkdir(path.join(outside(), 'agents', 'hello'), { recursive: true })
  const defineAgent = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
  await writeFile(
    path.join(outside(), 'agents', 'hello', 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(defineAgent)}
     const skill = { id: 'greet', name: 'Greet', description: 'Greets' }
     export default defineAgent({ name: 'hello', description: 'Greets', skills: [skill], handle: ({ text }) => 'Hello, ' + text })`,
  )
  const identity = await runCli([
    'did',
    'new',
    '--gateway',
    '--author',
    'ada@example.com',
    '--name',
    'Front Door',
  ])
  const settings = gatewayConfig({
    ...parseEnv(identity.stdout),
    PORT: '0',
    DATA_DIR: path.join(inHouse(), '.parley'),
    NODE_ENV: 'production',
    PARLEY_EMBEDDED_OAUTH: 'yes',
    REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
  })
  gateway = await startGatewayApp({ settings, log: makeLog({ level: 'silent', name: 'test' }) })
  env = { PUBLIC_URL: gateway.addresses.public, DATA_DIR: '.parley' }
})

afterAll(async () => {
  agent?.kill('SIGKILL')
  await gateway[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** Runs `parley agent agents/hello` in the second folder. Resolves once the agent is registered. */
async function runAgent(more: Record<string, string> = {}): Promise<string> {
  const child = spawn(
    process.execPath,
    [path.resolve('cli/bin.mjs'), 'agent', 'agents/hello', '--port', '0'],
    {
      cwd: outside(),
      env: { PATH: process.env['PATH'], HOME: folder, GATEWAY_URL: gateway.addresses.public, ...more },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  )
  agent = child
  let said = ''
  for await (const chunk of child.stderr) {
    said += String(chunk)
    if (said.includes('registered at the gateway')) break
  }
  child.stderr.resume()
  return said
}

async function stopAgent(): Promise<void> {
  const ended = once(agent as ChildProcess, 'exit')
  agent?.kill('SIGTERM')
  expect((await ended)[0]).toBe(0)
}

describe('an agent in another folder', () => {
  let taskId = ''
  /** Two tokens of a caller: one without an audience and one bound to the agent. */
  let unbound = ''
  let token = ''

  test('the agent registers with a proof and its own client and waits for an operator', async () => {
    const initial = await readFile(path.join(inHouse(), '.parley', 'oauth', 'initial-access-token'), 'utf8')
    const said = await runAgent({ OAUTH_INITIAL_TOKEN: initial.trim() })
    expect(said).toContain('it receives no work until an operator admits it')
    expect((await cli('agents')).stdout).toContain('ready, not admitted')
    const file = path.join(outside(), '.parley', 'agents', 'hello', 'oauth-client.json')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(said).not.toContain(initial.trim())
    const entry = await fetch(`${gateway.addresses.public}/registry/agents/hello`)
    const { token_resource: resource } = (await entry.json()) as { token_resource: string }
    const scopes = ['token', '--operator', '--scope', 'agent:read agent:write']
    unbound = (await cli(...scopes)).stdout.trim()
    token = (await cli(...scopes, '--resource', resource)).stdout.trim()
    const refused = await cli('send', 'hello', 'Ada', '--token', token)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('has not been admitted by an operator')
    expect(refused.stderr).toContain('npx parley admit ')
  })

  test('the agent receives work once it is admitted', async () => {
    const weak = await cli('admit', 'hello', '--token', unbound)
    expect([weak.code, weak.stderr]).toEqual([1, expect.stringContaining('lacks the scope agent:admin')])
    const stale = await cli('admit', 'hello', '--revision', 'another')
    expect([stale.code, stale.stderr]).toEqual([
      1,
      expect.stringContaining('has changed since it was reviewed'),
    ])
    const { revision } = JSON.parse(
      await (await fetch(`${gateway.addresses.public}/registry/agents/hello`)).text(),
    ) as { revision: string }
    const admitted = await cli('admit', 'hello', '--revision', revision)
    expect(admitted.stdout).toMatch(/^admitted +yes$/m)
    expect(admitted.stdout).toMatch(new RegExp(`^revision +${revision}$`, 'm'))
    expect(await cli('send', 'hello', 'Ada', '--token', unbound)).toMatchObject({ code: 0 })
    const sent = await cli('send', 'hello', 'Ada', '--json', '--token', token)
    expect(sent.stdout).toContain('Hello, Ada')
    taskId =
      /"task_id":"([\da-f-]{36})"|"id":"([\da-f-]{36})"/.exec(sent.stdout)?.slice(1).find(Boolean) ?? ''
  })

  test('the agent accepts a token bound to it and rejects one bound to another agent', async () => {
    const tokenFor = async (resource: string) => {
      const scopes = ['--scope', 'agent:read agent:write']
      return (await cli('token', '--operator', ...scopes, '--resource', resource)).stdout.trim()
    }
    const did =
      /did:parley:\S+/.exec((await cli('agents', '--json')).stdout)?.[0].replace(/[",].*$/, '') ?? ''
    expect(await cli('send', 'hello', 'Ada', '--token', await tokenFor(did))).toMatchObject({ code: 0 })
    const other = await cli('send', 'hello', 'Ada', '--token', await tokenFor('https://other.example'))
    expect(other).toMatchObject({ code: 1, stdout: '' })
    expect((await cli('token', '--operator', '--resource', 'here')).stderr).toContain('invalid_target')
  })

  test('verification covers the gateway’s document to the answer, online and offline, and fails if one byte differs', async () => {
    const saved = path.join(folder, 'saved')
    const online = await cli('verify', taskId, '--agent', 'hello', '--save', saved, '--token', token)
    expect(online).toMatchObject({ code: 0 })
    expect(online.stdout.match(/^ok /gm)).toHaveLength(11)
    expect((await runCli(['verify', '--from', saved])).code).toBe(0)
    expect((await runCli(['verify', taskId, '--agent', 'hello', '--from', saved])).code).toBe(0)
    for (const [file, from, to, fault] of [
      ['task.json', 'Hello, Ada', 'Hello, Eve', 'crypto_mismatch'],
      ['entry.json', '"Greets"', '"greets"', 'about this card'],
      ['entry.json', '"verified": true', '"verified": false', 'verified'],
      ['agent.json', 'key-1', 'key-2', 'numbered'],
      ['gateway.json', 'front_door', 'back_door', 'another DID|not made|proof|numbered'],
    ] as const) {
      const text = await readFile(path.join(saved, file), 'utf8')
      await writeFile(path.join(saved, file), text.replaceAll(from, to))
      const offline = await runCli(['verify', '--from', saved])
      expect(offline.code).toBe(1)
      expect(offline.stdout).toMatch(new RegExp(`^NO .*(${fault})`, 'm'))
      await writeFile(path.join(saved, file), text)
    }
  })

  test.each([
    ['another task', [randomUUID()], 'the task is the requested one: It is another'],
    ['another agent', ['--agent', 'hell'], 'the entry belongs to the requested agent: It is that of http'],
    ['a task that is not there', [randomUUID()], 'the task is the requested one: There is none', 'task.json'],
  ])('verification fails for %s', async (_what, asked, fault, without?: string) => {
    const [saved, some] = [path.join(folder, 'saved'), path.join(folder, randomUUID())]
    await cp(saved, some, { recursive: true })
    if (without !== undefined) await rm(path.join(some, without))
    const offline = await runCli(['verify', ...asked, '--from', some])
    expect(offline.stdout.match(/^NO .*$/gm)).toEqual([expect.stringContaining(fault)])
    expect(offline.code).toBe(1)
  })

  test('the agent keeps its admission when it leaves and returns with a rotated key', async () => {
    await stopAgent()
    expect((await cli('agents')).stdout).toBe('No agents.\n')
    expect((await cliOutside('did', 'rotate', 'hello')).code).toBe(0)
    const shown = await cliOutside('did')
    expect(shown.stdout).toMatch(/key-1 .* listed\n.*key-2 .* signs/)
    await runAgent()
    expect((await cli('agents')).stdout).toMatch(/hello +ready +greet/)
    expect((await cli('verify', taskId, '--agent', 'hello', '--token', token)).code).toBe(0)
  })

  test('the agent can return after its old key was retired', async () => {
    await stopAgent()
    expect((await cliOutside('did', 'retire', 'hello')).code).toBe(0)
    expect((await cliOutside('did')).stdout).toMatch(/key-1 .* retired\n.*key-2 .* signs/)
    await runAgent()
    expect((await cli('verify', '--agent', 'hello')).code).toBe(0)
  })

  test('the agent passes `parley check`', async () => {
    const url = gateway.registry.bySlug('hello')?.url ?? ''
    const checked = await runCli(['check', url, '--token', token])
    expect(checked.stdout.match(/^ok /gm)).toHaveLength(8)
    expect(checked.code).toBe(0)
  })

  test('the operator quarantines, releases and removes the agent', async () => {
    expect((await cli('quarantine', 'hello', '--reason', 'lies')).stdout).toMatch(/^quarantine +lies$/m)
    expect((await cli('send', 'hello', 'Ada', '--token', token)).stderr).toContain(
      'quarantined by an operator',
    )
    expect((await cli('release', 'hello')).stdout).not.toContain('quarantine')
    expect((await cli('remove', 'hello')).stdout).toBe('hello is no longer registered.\n')
    expect(await cli('admit', 'hello')).toMatchObject({ code: 1, stdout: '' })
  })
})

test('parley register prints the entry of an A2A agent and admits it with --operator', async () => {
  const card = { status: 200, type: 'application/json', body: '{"name":"Far Away"}' }
  await using far = await scriptedAgent({ 'GET /.well-known/agent.json': () => card })
  const said = await cli('register', far.url, '--operator')
  expect(said.stdout).toMatch(/^agent +far-away\ndid +none\n/)
  expect(said.stdout).toMatch(/^verified +no\nadmitted +yes$/m)
  const refused = await cli('register', 'http://10.0.0.1', '--operator')
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(refused.stderr).toContain('not on the public internet')
})

test('parley check suggests fixes', async () => {
  const json =
    (body: string, status = 200) =>
    () => ({ status, type: 'application/json', body })
  const odd = await scriptedAgent({
    'GET /.well-known/agent.json': json('{"did":"did:parley:a:agent:1"}'),
    'GET /agent/skills': json('{"skills":[]}'),
    'GET /health': json('{"checks":{"storage":"error: full"}}', 503),
  })
  const { code, stdout } = await runCli(['check', odd.url], { cwd: os.tmpdir() })
  expect(code).toBe(1)
  expect(stdout.split('\n').map((line) => line.slice(0, 24).trimEnd())).toEqual(
    [
      'ok    reachable',
      'FIX   card',
      'FIX   skills',
      'FIX   DID document',
      'FIX   health',
      'ok    error answers',
      'FIX   asks for a token',
      '–     task',
      '',
    ].map((line) => line.slice(0, 24).trimEnd()),
  )
  expect(stdout).toContain('storage: error: full')
  await odd[Symbol.asyncDispose]()
  const away = await runCli(['check', odd.url])
  expect(away).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^FIX {3}reachable .*nothing is listening at this address/),
  })
})

test.each([
  [404, '{}', 'An unknown path returns 404, but the body is not a JSON-RPC error object.'],
  [200, '{}', 'An unknown path must return 404 with a JSON-RPC error; it returns 200.'],
])('parley check explains the fault of a response with status %i', async (status, body, sentence) => {
  await using odd = await scriptedAgent({
    'GET /.well-known/agent.json': () => ({ status: 200, type: 'application/json', body: '{}' }),
    'GET /no-such-route': () => ({ status, type: 'application/json', body }),
  })
  const { stdout } = await runCli(['check', odd.url], { cwd: os.tmpdir() })
  expect(stdout).toContain(sentence)
  expect(stdout).toContain('the status is 404 instead of 401; the error code is -32601 instead of -32009')
})

test('parley did new --gateway prints three lines for .env, with a new seed each time', async () => {
  const [one, two] = [await runCli(['did', 'new', '--gateway']), await runCli(['did', 'new', '--gateway'])]
  const settings = parseEnv(one.stdout)
  expect(Object.keys(settings).sort()).toEqual([
    'SERVICE_GATEWAY_AUTHOR',
    'SERVICE_GATEWAY_DID_SEED',
    'SERVICE_GATEWAY_NAME',
  ])
  expect(gatewayConfig(settings as NodeJS.ProcessEnv).secrets.identity?.seed).toHaveLength(32)
  expect(parseEnv(two.stdout)['SERVICE_GATEWAY_DID_SEED']).not.toBe(settings['SERVICE_GATEWAY_DID_SEED'])
})

test.each([
  ['did', 'turn'],
  ['did', 'new'],
  ['did', 'rotate'],
  ['did', 'rotate', '../x'],
  ['did', 'new', '--gateway', '--author', 'a:b'],
  ['verify'],
  ['verify', 'no-uuid', '--agent', 'Not A Slug'],
  ['check', 'ftp://x'],
  ['admit', '../x'],
])('incorrect usage of %s %s causes exit code 2', async (...argv) => {
  using empty = temporaryFolder()
  expect(await runCli(argv, { cwd: empty.path })).toMatchObject({ code: 2, stdout: '' })
})
