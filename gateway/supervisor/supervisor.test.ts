import { readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ReadyAgent } from './supervised-agent.ts'
import { Supervisor, type SupervisorOptions } from './supervisor.ts'

/** The beginning that all fixtures share: the handshake, followed by a server that answers `/health`. */
const prelude = `
import http from 'node:http'
import fs from 'node:fs'
import path from 'node:path'
import { signStart } from ${JSON.stringify(pathToFileURL(path.resolve('shared/kit/did/challenge.ts')).href)}
import { agentIdentity } from ${JSON.stringify(pathToFileURL(path.resolve('shared/kit/did/identity.ts')).href)}
import { keyPairFromSeed } from ${JSON.stringify(pathToFileURL(path.resolve('shared/kit/did/keys.ts')).href)}
import { retireOldKeys, rotateKeys } from ${JSON.stringify(pathToFileURL(path.resolve('shared/kit/did/key-file.ts')).href)}
const name = path.basename(process.argv[2])
const keyFile = path.join(process.env.DATA_DIR, 'key.json')
const identify = () => agentIdentity('test', keyFile)
const { did, document } = await identify()
const otherKey = keyPairFromSeed(new Uint8Array(32)).publicKeyBase58
process.on('disconnect', () => process.exit(0))
const introduce = (as = did, by = document) => new Promise((resolve) => {
  process.on('message', async (message) => {
    if (message.type !== 'challenge') return resolve(message)
    process.send({ type: 'proof', signature: signStart(message.nonce, as, (await identify()).key) })
  })
  process.send({ type: 'identity', did: as, document: by })
})
const listen = (answer = (_request, response) => response.end('{}')) => new Promise((resolve) => {
  const server = http.createServer(answer).listen(Number(process.env.PORT), process.env.HOST, () => {
    const url = 'http://127.0.0.1:' + server.address().port
    process.send({ type: 'ready', url, card: { name, did } })
    resolve(server)
  })
})
const starts = (() => {
  const file = path.join(process.env.DATA_DIR, 'starts')
  fs.appendFileSync(file, 'x')
  return fs.statSync(file).size
})()
process.on('SIGTERM', () => { fs.writeFileSync(path.join(process.env.DATA_DIR, 'stopped'), 'yes'); process.exit(0) })
`
const healthy = 'await introduce(); await listen()'

let folder: string
let supervisor: Supervisor | undefined

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-supervisor-'))
})

afterEach(async () => {
  await supervisor?.[Symbol.asyncDispose]()
  supervisor = undefined
  await rm(folder, { recursive: true, force: true })
})

async function addAgent(name: string, script: string, settings?: unknown): Promise<void> {
  await mkdir(path.join(folder, 'agents', name), { recursive: true })
  await writeFile(path.join(folder, 'agents', name, 'agent.js'), '')
  await writeFile(path.join(folder, 'agents', name, 'run.mjs'), prelude + script)
  if (settings !== undefined) {
    const text = typeof settings === 'string' ? settings : JSON.stringify(settings)
    await writeFile(path.join(folder, 'agents', name, 'settings.json'), text)
  }
}

const isolationMode = 'none'
const noLimits = { memoryMb: 0, files: 0, processes: 0 }

/** Starts a supervisor for the test's agents. `heard` collects all events. */
async function start(options: Partial<SupervisorOptions> = {}) {
  const heard = { ready: [] as ReadyAgent[], gone: [] as string[], lines: [] as string[], log: '' }
  const waiting: { met: () => boolean; resolve: () => void }[] = []
  const look = () => waiting.filter(({ met }) => met()).forEach(({ resolve }) => resolve())
  const destination = {
    write: (line: string) => {
      heard.log += line
      look()
    },
  }
  const note =
    <T>(list: T[]) =>
    (item: T) => {
      list.push(item)
      look()
    }
  const onReady = note(heard.ready)
  const onGone = note(heard.gone)
  supervisor = await Supervisor.start({
    agentsDir: path.join(folder, 'agents'),
    dataDir: path.join(folder, 'data'),
    host: '127.0.0.1',
    firstPort: 0,
    environment: { PATH: process.env['PATH'] ?? '' },
    settings: () => ({ GATEWAY_URL: 'http://127.0.0.1:1' }),
    clientFor: async ({ did }) => ({ clientId: did, clientSecret: `secret of ${did}` }),
    onReady: async (agent) => onReady(agent),
    onGone: (name, back) => onGone(`${name} ${back}`),
    pass: note(heard.lines),
    log: makeLog({ level: 'info', name: 'test', destination }),
    isolation: { mode: isolationMode, uids: [1_900_000_000, 1_999_999_999], limits: noLimits },
    command: (agent) => ({ file: process.execPath, args: [path.join(agent, 'run.mjs'), agent] }),
    timing: { backoff: { firstMs: 10 }, watchdog: { everyMs: 50, missesMax: 2 }, stopLimitMs: 5000 },
    ...options,
  })
  const until = (met: () => boolean) =>
    met() ? Promise.resolve() : new Promise<void>((resolve) => waiting.push({ met, resolve }))
  return { heard, until, supervisor }
}

const dataOf = (name: string, file: string) =>
  readFile(path.join(folder, 'data', 'agents', name, file), 'utf8')
/** Returns whether a process is running. A zombie process still has its process id but is not running. */
const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    return (error as NodeJS.ErrnoException).path !== undefined && process.platform !== 'linux'
  }
}

test('each folder with an agent runs as a separate process with its own key, client and data folder', async () => {
  await addAgent(
    'one',
    `const client = await introduce(); console.log(JSON.stringify(client)); await listen()`,
  )
  await addAgent('two', healthy)
  await mkdir(path.join(folder, 'agents', 'no-agent-here'))
  const { heard, supervisor } = await start()
  const outcomes = await supervisor.settled()
  expect(outcomes.map(({ name, state }) => `${name} ${state}`)).toEqual(['one ready', 'two ready'])
  const [one, two] = heard.ready.sort((a, b) => (a.name < b.name ? -1 : 1))
  expect(one?.owner).toBe(one?.did)
  expect(one?.did).not.toBe(two?.did)
  expect(new Set(supervisor.pids()).size).toBe(2)
  // `ready` can arrive before the output is read.
  await expect.poll(() => heard.lines.join()).toContain(`"client_secret":"secret of ${one?.did}"`)
  expect(await dataOf('one', 'key.json')).not.toBe(await dataOf('two', 'key.json'))
})

test('an agent receives only its own settings', async () => {
  await addAgent('curious', `console.log(JSON.stringify(process.env)); ${healthy}`, {
    env: ['OPENAI_BASE_URL'],
  })
  const { heard, until, supervisor } = await start({
    environment: {
      PATH: process.env['PATH'] ?? '',
      LOG_LEVEL: 'warn',
      OPENAI_BASE_URL: 'http://127.0.0.1:1/v1',
      OPENAI_API_KEY: 'another agent needs it',
      OAUTH_CLIENT_SECRET: 'of the gateway',
      SERVICE_GATEWAY_DID_SEED: 'of the gateway',
      NODE_OPTIONS: '--no-warnings',
      STORE_URL: 'sqlite:/tmp/x',
    },
  })
  await supervisor.settled()
  await until(() => heard.lines.some((line) => line.startsWith('{')))
  const env = JSON.parse(heard.lines.find((line) => line.startsWith('{')) ?? '{}') as Record<string, string>
  expect(
    Object.keys(env)
      .filter((name) => !name.startsWith('NODE_CHANNEL'))
      .sort(),
  ).toEqual(['DATA_DIR', 'GATEWAY_URL', 'HOST', 'LOG_LEVEL', 'OPENAI_BASE_URL', 'PATH', 'PORT'])
  expect(env['DATA_DIR']).toBe(path.join(folder, 'data', 'agents', 'curious'))
})

test.each<[string, unknown, RegExp]>([
  ['a required setting is missing', { required: ['OPENAI_API_KEY'] }, /needs OPENAI_API_KEY/],
  [
    'settings.json names a secret of the gateway',
    { env: ['SERVICE_GATEWAY_DID_SEED'] },
    /is reserved for the gateway/,
  ],
  [
    'settings.json names the OAuth secret of the gateway',
    { required: ['OAUTH_CLIENT_SECRET'] },
    /is reserved for the gateway/,
  ],
  [
    'settings.json names a variable that changes how Node.js runs',
    { env: ['NODE_OPTIONS'] },
    /is reserved for the gateway/,
  ],
  ['settings.json is not JSON', '{', /is not JSON/],
  ['settings.json does not match the schema', { env: 'PATH' }, /env/],
  [
    'settings.json has a misspelled field',
    { env: [], egres: ['a.example:443'] },
    /settings\.json has the unknown field "egres": did you mean "egress"\?/,
  ],
  [
    'settings.json has exchanged letters in a field',
    { raed: ['/srv'] },
    /has the unknown field "raed": did you mean "read"\?/,
  ],
  [
    'settings.json has an unknown field',
    { memory: 512 },
    /has the unknown field "memory": the fields are env, required, allow, read, egress, secret, meaning/,
  ],
])(
  'an agent is not started if %s, which is logged once while the other agents run',
  async (_what, settings, reason) => {
    await addAgent('odd', healthy, settings)
    await addAgent('fine', healthy)
    const { heard, supervisor } = await start()
    const [fine, odd] = await supervisor.settled()
    expect(fine).toMatchObject({ name: 'fine', state: 'ready' })
    expect(odd).toMatchObject({ name: 'odd', state: 'not-started', reason: expect.stringMatching(reason) })
    expect(heard.log.match(/agent odd is not started/g)).toHaveLength(1)
  },
)

test('a process that dies is restarted with the same key and the log contains the cause', async () => {
  await addAgent('weak', `${healthy}; if (starts === 1) { console.error('disk on fire'); process.exit(7) }`)
  const { heard, until } = await start()
  await until(() => heard.ready.length === 2)
  expect(heard.log).toMatch(/agent weak exited with code 7; its last output: disk on fire/)
  expect(heard.gone).toEqual(['weak true'])
  expect(heard.ready[0]?.did).toBe(heard.ready[1]?.did)
})

test('the reason given for an agent that cannot start is its own message without log syntax', async () => {
  const line = { level: 60, reason: 'PAYMENT_RPC_URL must be set.', msg: 'agent cannot start' }
  await addAgent('refused', `console.error(${JSON.stringify(JSON.stringify(line))}); process.exit(1)`)
  const { supervisor } = await start()
  expect(await supervisor.settled()).toMatchObject([
    { state: 'failed', reason: 'cannot start: PAYMENT_RPC_URL must be set.' },
  ])
})

test('the reason given for an agent that the registry refuses is the registry’s message', async () => {
  await addAgent('copy', healthy)
  const refuse = async () => {
    throw new Error('The slug same belongs to another agent')
  }
  const { supervisor } = await start({ onReady: refuse })
  expect(await supervisor.settled()).toMatchObject([
    { state: 'failed', reason: 'was refused: The slug same belongs to another agent' },
  ])
})

test('a process killed by a signal is restarted and the log contains the signal', async () => {
  await addAgent('weak', healthy)
  const { heard, until, supervisor } = await start()
  await supervisor.settled()
  process.kill(supervisor.pids()[0] as number, 'SIGKILL')
  await until(() => heard.ready.length === 2)
  expect(heard.log).toContain('was terminated by SIGKILL')
})

test('an agent that fails to start does not stop the others and is retried', async () => {
  await addAgent('broken', `throw new Error('no model file')`)
  await addAgent('fine', healthy)
  const { heard, until, supervisor } = await start()
  const [broken, fine] = await supervisor.settled()
  expect(broken).toMatchObject({ state: 'failed', reason: expect.stringContaining('no model file') })
  expect(fine).toMatchObject({ state: 'ready' })
  await until(() => heard.gone.filter((line) => line === 'broken true').length >= 3)
  expect(supervisor.notRunning()).toEqual([
    { name: 'broken', reason: expect.stringContaining('no model file'), since: expect.any(Number) },
  ])
})

test('a process with a blocked event loop is killed by the watchdog and restarted', async () => {
  await addAgent('stuck', `${healthy}; if (starts === 1) for (;;) {}`)
  const { heard, until } = await start()
  await until(() => heard.ready.length === 2)
  expect(heard.log).toContain('stopped responding to /health')
})

test('a process that answers health checks with 503 is treated as alive', async () => {
  await addAgent(
    'sick',
    `let asked = 0
    await introduce()
    await listen((_request, response) => { response.statusCode = 503; response.end(); if (++asked === 5) console.log('asked 5 times') })`,
  )
  const { heard, until } = await start()
  await until(() => heard.lines.includes('asked 5 times'))
  expect(heard.gone).toEqual([])
})

test('a process that never listens is killed after its time limit', async () => {
  await addAgent('slow', 'setInterval(() => {}, 1000)')
  const { supervisor } = await start({
    timing: { startLimitMs: 300, backoff: { firstMs: 60_000, longestMs: 60_000 } },
  })
  expect(await supervisor.settled()).toMatchObject([
    { state: 'failed', reason: expect.stringContaining('did not listen') },
  ])
})

test.each([
  [
    'the DID of another key',
    `const other = 'did:parley:test:agent:00000000-0000-0000-0000-000000000000'
    await introduce(other, JSON.parse(JSON.stringify(document).replaceAll(did, other)))`,
    'does not match its key',
  ],
  [
    'a key not signed by the first key',
    `await rotateKeys(keyFile)
    const rotated = (await identify()).document
    const { publicKeyBase58 } = rotated.keyHistory[1]
    await introduce(did, JSON.parse(JSON.stringify(rotated).replaceAll(publicKeyBase58, otherKey)))`,
    'not signed by the one before it',
  ],
  [
    'the DID and the public document of another agent',
    `const victim = await agentIdentity('test', path.join(process.env.DATA_DIR, 'other.json'))
    await introduce(victim.did, victim.document)
    await listen()`,
    'did not prove that it has the key of its DID',
  ],
  [
    'the document of another agent and no proof',
    `const victim = await agentIdentity('test', path.join(process.env.DATA_DIR, 'other.json'))
    process.send({ type: 'identity', did: victim.did, document: victim.document })
    await listen()`,
    'did not send its identity',
  ],
  [
    'a proof without a challenge',
    `process.send({ type: 'proof', signature: signStart('', did, (await identify()).key) })
    await listen()`,
    'did not send its identity',
  ],
  ['no document', 'await introduce(did, null)', 'not a DID document'],
  ['no DID at all', 'await listen()', 'did not send its identity'],
])('a process with %s is not reported as ready', async (_what, script, reason) => {
  await addAgent('liar', script)
  const { heard, supervisor } = await start({ timing: { backoff: { firstMs: 60_000, longestMs: 60_000 } } })
  expect(await supervisor.settled()).toMatchObject([
    { state: 'failed', reason: expect.stringContaining(reason) },
  ])
  expect(heard.ready).toEqual([])
})

test('the agent’s client gets the current key after a key rotation', async () => {
  await addAgent(
    'rotated',
    `await rotateKeys(keyFile)
    await retireOldKeys(keyFile)
    const { key, document: now } = await identify()
    console.log('current key ' + key.publicKeyBase58)
    await introduce(did, now)
    await listen()`,
  )
  const keys: string[] = []
  const clientFor: SupervisorOptions['clientFor'] = async ({ did, publicKey }) => {
    keys.push(publicKey)
    return { clientId: did, clientSecret: 'secret' }
  }
  const { heard, supervisor } = await start({ clientFor })
  expect(await supervisor.settled()).toMatchObject([{ state: 'ready' }])
  expect(keys).toHaveLength(1)
  await expect.poll(() => heard.lines).toContain(`current key ${keys[0]}`)
})

test('the second of two agents with the same key is refused', async () => {
  await addAgent('a', healthy)
  const first = await start()
  await first.supervisor.settled()
  await first.supervisor[Symbol.asyncDispose]()
  await mkdir(path.join(folder, 'data', 'agents', 'b'), { recursive: true })
  await writeFile(path.join(folder, 'data', 'agents', 'b', 'key.json'), await dataOf('a', 'key.json'))
  await addAgent('b', healthy)
  const { supervisor } = await start({ timing: { backoff: { firstMs: 60_000, longestMs: 60_000 } } })
  const states = (await supervisor.settled()).map(({ state }) => state)
  expect(states.sort()).toEqual(['failed', 'ready'])
})

test('stop sends SIGTERM to every process and waits for it', async () => {
  await addAgent('one', healthy)
  await addAgent('two', healthy)
  const { supervisor, heard } = await start({ timing: { stopLimitMs: 30_000 } })
  await supervisor.settled()
  const pids = supervisor.pids()
  await supervisor[Symbol.asyncDispose]()
  expect(pids.filter(isAlive)).toEqual([])
  expect(await dataOf('one', 'stopped')).toBe('yes')
  expect(heard.gone.sort()).toEqual(['one false', 'two false'])
})

test('a process that ignores SIGTERM is killed together with its children after the time limit', async () => {
  await addAgent(
    'deaf',
    `import { spawn } from 'node:child_process'
     process.removeAllListeners('SIGTERM'); process.on('SIGTERM', () => {})
     const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'inherit' })
     console.log('child ' + child.pid); ${healthy}`,
  )
  const { supervisor, heard, until } = await start({ timing: { stopLimitMs: 200 } })
  await supervisor.settled()
  await until(() => heard.lines.some((line) => line.startsWith('child ')))
  const pids = [...supervisor.pids(), Number(heard.lines.find((line) => line.startsWith('child '))?.slice(6))]
  await supervisor[Symbol.asyncDispose]()
  expect(pids.filter(isAlive)).toEqual([])
})

test('agents get consecutive ports in alphabetical order and ports in use are skipped', async () => {
  for (const name of ['a', 'b', 'c']) await addAgent(name, healthy)
  const taken = net.createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => taken.once('listening', resolve))
  const firstPort = (taken.address() as net.AddressInfo).port
  const { heard, supervisor } = await start({ firstPort })
  await supervisor.settled()
  taken.close()
  const ports = heard.ready
    .sort((x, y) => (x.name < y.name ? -1 : 1))
    .map(({ url }) => Number(new URL(url).port))
  expect(ports).toEqual([...ports].sort((x, y) => x - y))
  expect(ports).not.toContain(firstPort)
  expect(Math.min(...ports)).toBeGreaterThan(firstPort)
})

test('a missing agents folder is treated as empty', async () => {
  const { supervisor } = await start()
  expect(await supervisor.settled()).toEqual([])
})
