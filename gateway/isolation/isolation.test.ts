import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
} from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import net from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { AgentClient } from '@parley/client/internal/client'
import { operatorClient } from '@parley/e2e/harness/operator'
import { ParleyProcess, root } from '@parley/e2e/harness/parley-process'
import { ClientToken } from '@parley/kit/auth/client-token'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { startRoleProxy } from '@parley/tools/testing/mongodb/roles'
import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { freePorts } from '@parley/tools/testing/port'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'

const agentsDir = path.join(root, 'tools/testing/isolated-agents')
/** A user without an account, for gateways that do not run as root. */
const unprivileged = 61_234
const open: AsyncDisposableStack[] = []
/** Compiled code from earlier deployments. Each deployment starts with a copy, because a start without it costs twice the time. */
const warm = mkdtempSync(path.join(tmpdir(), 'parley-isolation-cache-'))
afterAll(() => rm(warm, { recursive: true, force: true }))

afterEach(async () => {
  while (open.length > 0) await open.pop()?.disposeAsync()
})

type Mode = 'user' | 'namespace' | 'permission' | 'none'

/** Root without the right to mount, as in a container. */
const withoutMounts = ['setpriv', '--bounding-set=-sys_admin']

/** Why a mode cannot be tested here, or undefined. */
function obstacle(mode: Mode): string | undefined {
  if (process.platform !== 'linux') return mode === 'permission' ? undefined : 'needs Linux'
  const isRoot = process.getuid?.() === 0
  if (mode === 'user') return isRoot ? undefined : 'needs root'
  if (mode === 'none') return undefined
  const words = isRoot ? asUnprivileged : []
  const probe = (...command: string[]) => {
    const [file = '', ...args] = [...words, ...command]
    return spawnSync(file, args).status === 0
  }
  if (!probe('test', '-r', path.join(root, 'cli/bin.mjs')))
    return 'needs a checkout that other users may read'
  if (mode === 'namespace' && !probe('unshare', '--user', '--map-root-user', '--mount', 'true'))
    return 'needs user namespaces'
  return undefined
}

const asUnprivileged = ['setpriv', `--reuid=${unprivileged}`, `--regid=${unprivileged}`, '--clear-groups']

interface Started {
  gateway: ParleyProcess
  dataDir: string
  cache: string
  ask: (agent: string, message: object) => Promise<string>
}

interface StartOptions {
  mode: Mode
  env?: Record<string, string>
  /** Words before the command of the gateway. */
  prefix?: string[]
}

/** Starts a deployment until the end of the test. */
function start(options: StartOptions): Promise<Started> {
  const stack = new AsyncDisposableStack()
  open.push(stack)
  return startOn(stack, options)
}

/** Starts a deployment for all tests of the block. */
function startForBlock(options: StartOptions): { started: Started } {
  const stack = new AsyncDisposableStack()
  let started: Started | undefined
  beforeAll(async () => {
    started = await startOn(stack, options)
  })
  afterAll(() => stack.disposeAsync())
  return {
    get started() {
      if (started === undefined) throw new Error('the deployment has not started')
      return started
    },
  }
}

async function startOn(
  stack: AsyncDisposableStack,
  { mode, env = {}, prefix = [] }: StartOptions,
): Promise<Started> {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-isolation-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const [dataDir, cache] = [path.join(folder, 'data'), path.join(folder, 'cache')]
  for (const one of [dataDir, cache]) mkdirSync(one, { mode: 0o700 })
  // Agents with their own user have to reach their data folder.
  chmodSync(folder, 0o755)
  const demoted = mode !== 'user' && process.getuid?.() === 0
  for (const [from, to] of Object.entries(warmFolders(mode, cache, dataDir)))
    if (existsSync(from)) cpSync(from, to, { recursive: true })
  if (demoted) spawnSync('chown', ['-R', `${unprivileged}:${unprivileged}`, folder])
  const port = await freePorts(4)
  const command = [
    ...prefix,
    ...(demoted ? asUnprivileged : []),
    process.execPath,
    path.join(root, 'cli/bin.mjs'),
  ]
  const gateway = new ParleyProcess({
    name: 'gateway',
    command,
    args: ['up', '--agents', agentsDir],
    cwd: folder,
    port,
    env: {
      PATH: process.env['PATH'],
      HOME: folder,
      XDG_CACHE_HOME: cache,
      PORT: String(port),
      DATA_DIR: dataDir,
      AGENT_ISOLATION: mode,
      REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
      OTHER_SECRET: marker,
      ...env,
    },
    readyOutput: /\nisolation /,
  })
  stack.defer(async () => {
    await gateway.stop()
    keepCompiled(mode, cache, dataDir)
  })
  await gateway.start()
  await startRelay(gateway.url, dataDir)
  // The first condition is cheap. The second one reads about every process.
  const isStarted = () =>
    existsSync(path.join(dataDir, 'agents/.relay/agent.key.json')) && relaysOf(gateway).length > 0
  await vi.waitUntil(isStarted, { timeout: 100_000 })
  const client = { ...operatorClient(dataDir), scope: 'agent:read agent:write' }
  const ask = async (agent: string, message: object) => {
    const token = await new ClientToken(client).get()
    const caller = new AgentClient({ url: `${gateway.url}/agents/${agent}`, token })
    const sent = await caller.send(JSON.stringify(message))
    const isFinal = (state: string) => ['completed', 'failed', 'rejected'].includes(state)
    await expect.poll(async () => isFinal((await caller.get(sent.id)).status.state)).toBe(true)
    const task = await caller.get(sent.id)
    return JSON.stringify(task.artifacts?.[0]?.parts[0] ?? task.status)
  }
  return { gateway, dataDir, cache, ask }
}

/** The folders with compiled code: where it is kept, and where the deployment has it. */
function warmFolders(mode: Mode, cache: string, dataDir: string): Record<string, string> {
  return { [path.join(warm, 'gateway')]: cache, [path.join(warm, mode)]: dataDir }
}

/** Processes write the compiled code when they end. The users of the agents are kept too, because it is read by the same user only. */
function keepCompiled(mode: Mode, cache: string, dataDir: string): void {
  cpSync(cache, path.join(warm, 'gateway'), { recursive: true })
  for (const name of globSync(['agent-users.json', 'agents/{*,.relay}/cache/compiled'], { cwd: dataDir }))
    cpSync(path.join(dataDir, name), path.join(warm, mode, name), { recursive: true })
}

const marker = `marker-${randomUUID()}`
const production = { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes', RATE_LIMIT_PER_MINUTE: '0' }

/** The pids of the processes that run an agent of this gateway. */
function pidsOf(agent: string, gateway: ParleyProcess): number[] {
  return globSync('/proc/[0-9]*').flatMap((folder) => {
    try {
      const words = readFileSync(`${folder}/cmdline`, 'utf8').split('\0')
      const isAgent = words.at(-2) === path.join(agentsDir, agent) && words[0] === process.execPath
      const pid = Number(path.basename(folder))
      return isAgent && descendsFrom(gateway.pid, pid) ? [pid] : []
    } catch {
      return []
    }
  })
}

/** The pids of the processes of the relay. */
function relaysOf(gateway: ParleyProcess): number[] {
  return globSync('/proc/[0-9]*').flatMap((folder) => {
    try {
      const words = readFileSync(`${folder}/cmdline`, 'utf8').split('\0')
      const isRelay = words[0] === process.execPath && words.at(-3)?.endsWith('relay-process.ts') === true
      const pid = Number(path.basename(folder))
      return isRelay && descendsFrom(gateway.pid, pid) ? [pid] : []
    } catch {
      return []
    }
  })
}

/** Registers and admits an agent of another vendor, for which the gateway starts the relay. */
async function startRelay(url: string, dataDir: string): Promise<void> {
  await using foreign = await startForeignAgent((_request, reply) => reply.error(-32_603, 'no'))
  foreign.card = {
    name: 'foreign',
    description: 'Greets people',
    version: '1.0.0',
    supportedInterfaces: [{ url: foreign.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    skills: [{ id: 'greet', name: 'Greet', description: 'Greets people', tags: [] }],
  }
  const client = operatorClient(dataDir)
  const post = async (route: string, scope: string, body: object) => {
    const headers = {
      authorization: `Bearer ${await new ClientToken({ ...client, scope }).get()}`,
      'content-type': 'application/json',
    }
    const answer = await fetch(`${url}${route}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${route}: ${await answer.text()}`)
  }
  await post('/registry/agents', 'agent:write', { url: foreign.url })
  await post('/registry/agents/foreign/admit', 'agent:admin', {})
}

function descendsFrom(ancestor: number | undefined, pid: number): boolean {
  const parent = Number(/^PPid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
  return parent === ancestor || (parent > 1 && descendsFrom(ancestor, parent))
}

function targetFor(agent: string, { gateway, dataDir, cache }: Started) {
  const own = path.join('agents', agent)
  // A pattern does not match the folder of the relay, because its name begins with a dot.
  const names = globSync(['**/*', 'agents/.relay', 'agents/.relay/**/*'], { cwd: dataDir }).filter(
    (name) => name !== own && !name.startsWith(`${own}/`) && !name.includes('/cache/'),
  )
  const found = names.map((name) => path.join(dataDir, name))
  // A journal may end meanwhile.
  const kindOf = (name: string) => statSync(name, { throwIfNoEntry: false })
  const secrets = found.filter((name) => kindOf(name)?.isFile() === true)
  const folders = found.filter((name) => kindOf(name)?.isDirectory() === true)
  return {
    secrets,
    folders: [dataDir, ...folders],
    pids: [gateway.pid, ...pidsOf('neighbour', gateway), ...relaysOf(gateway)],
    code: [
      root,
      path.join(root, 'node_modules'),
      path.join(root, 'shared/agent'),
      path.join(agentsDir, agent),
    ],
    caches: [cache, path.join(cache, 'parley/compiled')],
    marker,
  }
}

/** Returns what the agent gained by its attempts. */
async function gainsOf(agent: string, started: Started): Promise<string[]> {
  const target = targetFor(agent, started)
  expect(target.secrets.map((file) => path.basename(file))).toEqual(
    expect.arrayContaining(['agent.key.json', 'agent.db', 'gateway.db', 'operator-client.json']),
  )
  expect(target.secrets.filter((file) => file.includes('/.relay/'))).not.toEqual([])
  expect(target.pids.length).toBeGreaterThanOrEqual(3)
  const answer = await started.ask(agent, { what: 'try', target })
  const part = JSON.parse(answer) as { text: string }
  const { attempts, gained } = JSON.parse(part.text) as { attempts: number; gained: [string, string][] }
  expect(attempts).toBeGreaterThan(100)
  return gained.map(([name]) => name)
}

const modes = (['user', 'namespace', 'permission'] as const).map((mode) => ({ mode, reason: obstacle(mode) }))
const limits = { AGENT_MEMORY_MAX_MB: '400', AGENT_FILES_MAX: '256', AGENT_PROCESSES_MAX: '150' }
/** No agent is isolated from the network in this mode, so the list only appears in the table. */
const unenforcedEgress = { AGENT_EGRESS: '127.0.0.1:9' }

/** The modes to which a test applies, for `test.each`. A skipped test would count as one that this machine can run. */
const where = (applies: boolean, mode: Mode): Mode[] => (applies ? [mode] : [])

const titleOf = ({ mode, reason }: (typeof modes)[number]) =>
  reason === undefined ? `isolation mode ${mode}` : `isolation mode ${mode} (${reason})`

for (const { mode, reason } of modes) {
  describe.skipIf(reason !== undefined)(`${titleOf({ mode, reason })}, development`, () => {
    const env = { ...limits, ...(mode === 'namespace' && unenforcedEgress) }
    const deployment = startForBlock({ mode, env })
    testAttempts(mode, deployment)

    test('open files and memory of an agent are limited', async () => {
      const { gateway, ask } = deployment.started
      const files = await ask('intruder', { what: 'files' })
      expect(files).toContain('EMFILE')
      expect(countIn(files)).toBeLessThan(256)
      const before = pidsOf('intruder', gateway)
      void ask('intruder', { what: 'memory' }).catch(() => undefined)
      await expect.poll(() => gateway.output).toContain('exceeded its memory limit of 400 MiB')
      await expect.poll(() => pidsOf('intruder', gateway)).toHaveLength(1)
      expect(pidsOf('intruder', gateway)).not.toEqual(before)
    })

    test.each(where(mode === 'namespace', mode))(
      'an egress list that cannot be enforced is reported in the table',
      () => {
        expect(deployment.started.gateway.output).toMatch(
          /missing +the egress list of intruder .*: it can connect to every address/,
        )
      },
    )

    // The gateway is stopped, so this test is the last one of the deployment.
    test.each(where(mode !== 'permission', mode))(
      'the processes of an agent are limited, and those that left its group are killed with it',
      async () => {
        const { gateway, ask } = deployment.started
        const started = countIn(await ask('intruder-with-processes', { what: 'processes' }))
        expect(started).toBeGreaterThan(50)
        expect(started).toBeLessThan(150)
        const sleeping = () => spawnSync('pgrep', ['-f', '^/bin/sleep 1000$']).status === 0
        expect(await gateway.stop()).toBe(0)
        expect(sleeping()).toBe(false)
      },
    )
  })

  describe.skipIf(reason !== undefined)(`${titleOf({ mode, reason })}, production`, () => {
    const deployment = startForBlock({ mode, env: production })
    testAttempts(mode, deployment)

    test.each(where(mode === (obstacle('user') === undefined ? 'user' : 'permission'), mode))(
      'an agent that floods the gateway with messages is killed and its forged messages have no effect',
      async () => {
        const { gateway, ask } = deployment.started
        // The forged messages precede the one with which the agent is killed.
        void ask('intruder', { what: 'flood' }).catch(() => undefined)
        await expect.poll(() => gateway.output).toContain('sent more than 100 messages to the gateway')
        const entries = await (await fetch(`${gateway.url}/.well-known/agents`)).text()
        expect(entries).not.toContain('forged')
      },
    )
  })
}

function testAttempts(mode: Mode, deployment: { started: Started }): void {
  test('a hostile agent reaches nothing of the gateway or of another agent', async () => {
    const { started } = deployment
    expect(started.gateway.output).toMatch(new RegExp(`\\nisolation +${mode} `))
    // Without its own user or namespace, an agent can send signals. The start reports it as missing.
    const { gateway } = started
    const pids = [gateway.pid, ...pidsOf('neighbour', gateway), ...relaysOf(gateway)]
    const known = mode === 'permission' ? pids.map((pid) => `signal ${pid}`) : []
    expect(await gainsOf('intruder', started)).toEqual(known)
    const reported = /missing +protection .* from signals/.test(started.gateway.output)
    expect(reported).toBe(mode === 'permission')
  })

  test.each(where(mode !== 'permission', mode))(
    'neither does a hostile agent that may start programs',
    async () => {
      expect(await gainsOf('intruder-with-processes', deployment.started)).toEqual([])
    },
  )
}

test.skipIf(process.getuid?.() !== 0)(
  'isolation mode user without the right to mount: a hostile agent reaches nothing, and the start reports the missing private root',
  async () => {
    const started = await start({ mode: 'user', prefix: withoutMounts })
    expect(started.gateway.output).toMatch(/\n +missing +a private root folder per agent/)
    expect(await gainsOf('intruder', started)).toEqual([])
    // Its capabilities are limited to the namespace.
    expect(await gainsOf('intruder-with-processes', started)).toEqual(['make a user namespace in a program'])
  },
)

test('without isolation, the same attempts read the secrets of the gateway and of the other agents', async () => {
  const started = await start({ mode: 'none' })
  expect(started.gateway.output).toMatch(
    /\n +missing +AGENT_ISOLATION=none: every agent can read the secrets/,
  )
  const gained = await gainsOf('intruder', started)
  expect(gained).toContain(`read ${started.dataDir}/oauth/operator-client.json`)
  expect(gained).toContain(`read ${started.dataDir}/agents/neighbour/agent.key.json in a thread`)
  expect(gained).toContain(`change ${started.dataDir}/gateway.db`)
  expect(gained).toContain(`read /proc/${started.gateway.pid}/environ in a program`)
  expect(gained).toContain(`write into ${started.cache}/parley/compiled`)
})

/** Starts agents on a MongoDB server and returns what the hostile one gained at the databases of the others. */
async function gainsAtDatabases(mode: Mode, url: string, admin: string): Promise<[Started, string[]]> {
  const started = await start({ mode, env: { STORE_URL: url } })
  await using database = await connectMongodb({ url: admin })
  const own = database.db.collection<{ name: string; database: string }>('agent_databases')
  const neighbour = await own.findOne({ name: 'neighbour' })
  const target = [database.db.databaseName, neighbour?.database]
  const answer = await started.ask('intruder', { what: 'databases', target })
  const { text } = JSON.parse(answer) as { text: string }
  const { attempts, gained } = JSON.parse(text) as { attempts: number; gained: string[] }
  expect(attempts).toBe(14)
  return [started, gained]
}

test.skipIf(!hasMongodb)(
  'a hostile agent reaches no MongoDB database of the gateway or of another agent (needs mongod)',
  async () => {
    await using server = await startMongodb()
    const admin = server.newUrl()
    const { hostname: host, port, pathname } = new URL(admin)
    const roles = ['readWriteAnyDatabase', 'userAdminAnyDatabase'].map((role) => ({ role, db: 'admin' }))
    const users = [{ name: 'operator', source: 'admin', password: 'secret', roles }]
    await using proxy = await startRoleProxy({ target: { host, port: Number(port) }, users })
    const url = `mongodb://operator:secret@${proxy.host}${pathname}?authSource=admin`
    const mode = obstacle('user') === undefined ? 'user' : 'permission'
    const [{ gateway }, gained] = await gainsAtDatabases(mode, url, admin)
    expect(gained).toEqual([])
    expect(gateway.output).not.toMatch(/missing +a MongoDB/)
    expect(proxy.users.map(({ name }) => name)).toContainEqual(expect.stringMatching(/^parley-/))
    expect(await gateway.stop()).toBe(0)
    expect(proxy.users).toHaveLength(1)
  },
)

test.skipIf(!hasMongodb)(
  'without roles, the same attempts succeed, and the start says so (needs mongod)',
  async () => {
    await using server = await startMongodb()
    const url = server.newUrl()
    const [{ gateway }, gained] = await gainsAtDatabases('none', url, url)
    expect(gained).toHaveLength(14)
    expect(gateway.output).toMatch(/missing +AGENT_ISOLATION=none/)
    const { gateway: isolated } = await start({ mode: 'permission', env: { STORE_URL: server.newUrl() } })
    expect(isolated.output).toMatch(
      /missing +a MongoDB user per agent \(the server at \S+ does not enforce roles: .*can read the others/,
    )
  },
)

function countIn(answer: string): number {
  const { text } = JSON.parse(answer) as { text: string }
  return (JSON.parse(text) as { count: number }).count
}

test.skipIf(obstacle('permission') !== undefined)(
  'a gateway that does not run as root refuses to start with AGENT_ISOLATION=user',
  async () => {
    await expect(start({ mode: 'none', env: { AGENT_ISOLATION: 'user' } })).rejects.toThrow(
      'AGENT_ISOLATION=user is not available on this machine (isolation mode user: it needs a gateway that runs as root)',
    )
  },
)

const hasNft = spawnSync('nft', ['list', 'ruleset']).status === 0

test.skipIf(obstacle('user') !== undefined || !hasNft)(
  'an agent with an egress list reaches its destinations and the gateway, and nothing else (needs nft)',
  async () => {
    const [allowed, refused] = [net.createServer(), net.createServer()]
    for (const server of [allowed, refused]) await once(server.listen(0, '127.0.0.1'), 'listening')
    const address = (server: net.Server) => `127.0.0.1:${(server.address() as net.AddressInfo).port}`
    const { gateway, ask } = await start({ mode: 'user', env: { AGENT_EGRESS: address(allowed) } })
    const connect = async (target: string) =>
      JSON.parse(
        (JSON.parse(await ask('intruder', { what: 'connect', target })) as { text: string }).text,
      ) as string
    expect(await connect(address(allowed))).toBe('connected')
    expect(await connect(new URL(gateway.url).host)).toBe('connected')
    expect(await connect(address(refused))).not.toBe('connected')
    expect(await gateway.stop()).toBe(0)
    expect(spawnSync('nft', ['list', 'tables'], { encoding: 'utf8' }).stdout).not.toContain('parley_')
    for (const server of [allowed, refused]) server.close()
  },
)
