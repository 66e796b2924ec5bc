import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { compileCache } from '@parley/tools/testing/killable-agent'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { hasRedis, type RedisServer, startRedis } from '@parley/tools/testing/redis-server'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

const urlOf = (file: string) => pathToFileURL(path.resolve(file)).href

/** An agent that reports its process id. The text contains the duration of the work in milliseconds. */
const agentSource = `
  import { appendFileSync } from 'node:fs'
  import path from 'node:path'
  import { setTimeout as wait } from 'node:timers/promises'
  import { defineAgent } from ${JSON.stringify(urlOf('shared/agent/author/define-agent.ts'))}
  const skill = { id: 'work', name: 'Work', description: 'Works', examples: ['100 a'] }
  const note = (name, what) => appendFileSync(path.join(process.env.DATA_DIR, name), what + ' ' + process.pid + '\\n')
  export default defineAgent({
    name: 'worker', description: 'Works', skills: [skill], concurrency: 4,
    async *handle({ text, signal }) {
      const [ms, name] = text.split(' ')
      note(name, 'started')
      for (let part = 0; part < 4; part += 1) {
        await wait(Number(ms) / 4, undefined, { signal }).catch(() => note(name, 'aborted'))
        if (signal.aborted) return
        yield 'part ' + part + ' '
      }
      yield String(process.pid)
    },
  })`

describe.skipIf(!hasMongodb || !hasRedis)('replicas on one machine (needs mongod, redis-server)', () => {
  let mongodb: MongodbServer
  let redis: RedisServer
  let folder: string
  let up: ChildProcess
  let said = ''
  let gateways: string[]
  let replicas: string[]
  let token: string

  beforeAll(async () => {
    mongodb = await startMongodb()
    redis = await startRedis()
    folder = await mkdtemp(path.join(os.tmpdir(), 'parley-replicas-'))
    const agentDir = path.join(folder, 'agents', 'worker')
    await mkdir(agentDir, { recursive: true })
    await writeFile(path.join(agentDir, 'agent.js'), agentSource)
    up = spawnUp({ STORE_URL: mongodb.newUrl(), REDIS_URL: redis.url })
    up.stdout?.on('data', (text: Buffer) => (said += text.toString()))
    up.stderr?.on('data', (text: Buffer) => (said += text.toString()))
    await vi.waitUntil(() => said.includes('curl'), { timeout: 100_000, interval: 100 })
    gateways = [...said.matchAll(/^gateway +ready +(\S+)/gm)].map(([, url]) => url as string)
    replicas = [...said.matchAll(/own address (\S+)\)/g)].map(([, url]) => url as string)
    token = await newToken()
  })
  afterAll(async () => {
    up?.kill('SIGKILL')
    await redis[Symbol.asyncDispose]()
    await mongodb[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
  })

  function spawnUp(env: Record<string, string>): ChildProcess {
    const options = { supervise: true, agentsDir: path.join(folder, 'agents'), replicas: 2, gateways: 2 }
    const script = `const { runGateway } = await import(${JSON.stringify(urlOf('gateway/main.ts'))})
      process.exitCode = await runGateway(${JSON.stringify(options)})`
    return spawn(process.execPath, ['--input-type=module', '-e', script], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        HOME: folder,
        DATA_DIR: 'data',
        PORT: '0',
        LOG_LEVEL: 'warn',
        // In the other modes, a process has another id than the one that it reports.
        AGENT_ISOLATION: 'permission',
        ...compileCache,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
  }

  async function newToken(): Promise<string> {
    const file = await readFile(path.join(folder, 'data', 'dev-client.json'), 'utf8')
    const { client_id, client_secret, token_url } = JSON.parse(file) as Record<string, string>
    const response = await fetch(token_url as string, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials&scope=agent:read+agent:write',
    })
    return ((await response.json()) as { access_token: string }).access_token
  }

  function post(url: string, method: string, params: object, lastEventId?: string): Promise<Response> {
    return fetch(url, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: '1', method, params }),
    })
  }

  // oxlint-disable-next-line typescript/no-explicit-any -- the shapes are what is tested
  async function call(url: string, method: string, params: object): Promise<any> {
    const response = await post(url, method, params)
    const body = (await response.json()) as { result?: unknown }
    if (body.result === undefined) throw new Error(JSON.stringify(body))
    return body.result
  }

  const saying = (text: string) => ({
    message: {
      role: 'user',
      kind: 'message',
      messageId: crypto.randomUUID(),
      parts: [{ kind: 'text', text }],
    },
  })
  const gateway = (n: number) => `${gateways[n % 2]}/agents/worker/`
  const get = (id: string, n = 0) => call(gateway(n), 'tasks/get', { task_id: id })
  const ended = async (id: string, timeout: number) => {
    let task = await get(id)
    const until = Date.now() + timeout
    for (let n = 0; task.status.state !== 'completed' && Date.now() < until; n += 1) {
      await wait(100)
      task = await get(id, n).catch(() => task)
    }
    expect(task.status.state).toBe('completed')
    return task
  }
  const notes = (name: string) => {
    try {
      return readFileSync(path.join(folder, 'data', 'agents', 'worker', name), 'utf8')
        .trim()
        .split('\n')
    } catch {
      return []
    }
  }
  const pidIn = (line: string | undefined) => Number(line?.split(' ')[1])

  test('the table shows two gateways and lists the two processes as one agent', async () => {
    expect([new Set(gateways).size, new Set(replicas).size]).toEqual([2, 2])
    // The other gateway reads registrations within 2 s.
    await vi.waitFor(
      async () => {
        const response = await fetch(`${gateways[1]}/registry/agents/worker`)
        expect(await response.json()).toMatchObject({ replicas: [{}, {}] })
      },
      { timeout: 100_000 },
    )
    const dids = replicas.map(async (url) => (await fetch(`${url}/.well-known/agent.json`)).json())
    const [one, two] = (await Promise.all(dids)) as { did: string }[]
    expect(one?.did).toBe(two?.did)
  })

  test('tasks are distributed over the processes and found at both gateways', async () => {
    const sent = await Promise.all(
      Array.from({ length: 16 }, (_, n) => call(gateway(n), 'message/send', saying('400 spread'))),
    )
    for (const { id } of sent) await ended(id, 15_000)
    expect(new Set(notes('spread').map(pidIn)).size).toBe(2)
    expect(notes('spread')).toHaveLength(16)
  })

  test('a stream from either process has all events of a task that the other process runs', async () => {
    for (const [n, url] of replicas.entries()) {
      const other = replicas[1 - n] as string
      const task = await call(url, 'message/send', saying('800 stream'))
      const response = await post(other, 'tasks/resubscribe', { task_id: task.id }, '0')
      const text = await response.text()
      const frames = text.split('\n\n').filter((frame) => /^id: \d/m.test(frame))
      const sequences = frames.map((frame) => Number(/^id: (\d+)/m.exec(frame)?.[1]))
      expect(sequences).toEqual(sequences.map((_, at) => at + (sequences[0] as number)))
      expect(frames.at(-1)).toContain('"completed"')
      expect(frames.some((frame) => frame.includes('artifact'))).toBe(true)
    }
  })

  test('cancel at either process reaches the process that runs the task', async () => {
    for (const [n, url] of replicas.entries()) {
      const task = await call(gateway(n), 'message/send', saying(`60000 cancel${n}`))
      await vi.waitFor(() => expect(notes(`cancel${n}`)).toHaveLength(1), { timeout: 100_000 })
      expect((await call(url, 'tasks/cancel', { task_id: task.id })).status.state).toBe('canceled')
      await vi.waitFor(() => expect(notes(`cancel${n}`)[1]).toMatch(/^aborted/), { timeout: 100_000 })
    }
  })

  test.runIf(process.platform === 'linux')(
    'after SIGKILL of one process, the other completes its tasks within 10 s, each restarted once; new tasks are accepted',
    async () => {
      const sent: { id: string }[] = []
      for (let n = 0; n < 4; n += 1)
        sent.push(await call(gateway(n), 'message/send', saying(`3000 kill${n}`)))
      const started = () => sent.every((_, n) => notes(`kill${n}`).length === 1)
      await vi.waitUntil(started, { timeout: 100_000 })
      const victim = pidIn(notes('kill0')[0])
      process.kill(victim, 'SIGKILL')
      for (let n = 0; n < 10; n += 1)
        await call(`${gateways[n % 2]}/`, 'message/send', saying('1 meanwhile works'))
      // A task is recovered within 10 s and then takes 3 s.
      for (const { id } of sent) await ended(id, 20_000)
      for (const [n] of sent.entries()) {
        const lines = notes(`kill${n}`)
        expect(lines).toHaveLength(pidIn(lines[0]) === victim ? 2 : 1)
      }
    },
    60_000,
  )

  test.runIf(process.platform === 'linux')(
    'SIGTERM ends all processes with exit code 0',
    async () => {
      const exit = once(up, 'close')
      up.kill('SIGTERM')
      expect((await exit)[0]).toBe(0)
      const left = readdirSync('/proc').filter(
        (pid) => /^\d+$/.test(pid) && environmentOf(pid).includes(folder),
      )
      expect(left).toEqual([])
    },
    40_000,
  )

  test('replicas without a shared database and Redis are refused with a message', async () => {
    const refused = spawnUp({ DATA_DIR: 'other' })
    let text = ''
    refused.stderr?.on('data', (chunk: Buffer) => (text += chunk.toString()))
    expect((await once(refused, 'close'))[0]).toBe(1)
    expect(text).toMatch(
      /^parley: Several processes need a shared database and queue: set STORE_URL=.* and REDIS_URL=.*\n$/,
    )
  })

  function environmentOf(pid: string): string {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8')
    } catch {
      return ''
    }
  }
})
