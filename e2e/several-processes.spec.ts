import path from 'node:path'
import { AgentClient, ConnectionError, RpcError, type WireTask } from '@parley/client/internal/client'
import { eventsOf, isSound } from '@parley/tools/testing/agent-processes'
import { expect } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import { Balancer } from './harness/balancer.ts'
import { Cluster } from './harness/cluster.ts'
import type { Backends } from './harness/deployment.ts'
import type { ParleyProcess } from './harness/parley-process.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

/** Time limit, generous for a machine under load. */
const patient = { timeout: 100_000, intervals: [100] }

let cluster: Cluster
let balancer: Balancer
let first: ParleyProcess
let second: ParleyProcess
let token: string

test.beforeAll(async ({ backends }) => {
  cluster = await startCluster(backends)
  token = await cluster.developmentToken(cluster.gateways[0]).get()
  first = await startAgent('agent-1')
  await cluster.admit('worker')
})
test.afterAll(async () => {
  await cluster?.[Symbol.asyncDispose]()
})

/** Two gateways behind a balancer, started at the same time. */
async function startCluster(backends: Backends): Promise<Cluster> {
  const started = await Cluster.start({
    gateways: 2,
    startsTogether: true,
    gatewaySettings: backends.newStore(),
    agentSettings: backends.newStore(),
    frontEnd: async (ports) => {
      balancer = await Balancer.start()
      balancer.targets = ports
      return balancer
    },
  })
  return started
}

/** The agent's processes share only the key, the store and Redis. */
const startAgent = (name: string) =>
  cluster.startAgent({ name, source: path.join(import.meta.dirname, 'agents', 'worker') })

const gatewayUrl = (number: number) => cluster.gateways[number]?.url ?? ''
const clientAt = (url: string) => new AgentClient({ url: `${url}/agents/worker`, token })
const atEither = () => clientAt(cluster.url)
const ended = (id: string) => patiently(() => atEither().wait(id, { signal: AbortSignal.timeout(150_000) }))
const textOf = (task: WireTask) => JSON.stringify(task.artifacts)
const isBy = ({ pid }: ParleyProcess) => {
  const end = new RegExp(`\\b${pid}"`)
  return (task: WireTask) => end.test(textOf(task))
}

/** Retries after a lost connection and after -32042, as clients should. */
async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await call()
    } catch (error) {
      const again = error instanceof ConnectionError || (error instanceof RpcError && error.code === -32042)
      if (!again || attempt === 20) throw error
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }
}

const send = (text: string, client = atEither()) => patiently(async () => (await client.send(text)).id)

/** Sends several tasks at a time until each process has completed one. */
async function untilAllWork(processes: ParleyProcess[]): Promise<void> {
  const tasks: WireTask[] = []
  await expect(async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, () => send('1')))
    tasks.push(...(await Promise.all(ids.map(ended))))
    for (const { status } of tasks) expect(status.state).toBe('completed')
    for (const one of processes) expect(tasks.some(isBy(one))).toBe(true)
  }).toPass(patient)
}

async function entryAt(gateway: number) {
  const response = await fetch(`${gatewayUrl(gateway)}/registry/agents/worker`)
  return (await response.json()) as { status: string; verified: boolean; replicas: unknown[] }
}

/** Number of messages that this process received. */
async function messagesAt({ url }: ParleyProcess): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const lines = text
    .split('\n')
    .filter((line) => /^http_requests_total\{.*rpc_method="message\/send"/.test(line))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

test('an unsupervised agent registers over HTTP and both gateways know it', async () => {
  for (const gateway of [0, 1])
    await expect(async () =>
      expect(await entryAt(gateway)).toMatchObject({ status: 'ready', verified: true, admitted: true }),
    ).toPass(patient)
  expect((await ended(await send('1'))).status.state).toBe('completed')
})

test('a second process with the same key, store and Redis is a replica that receives messages and works', async () => {
  second = await startAgent('agent-2')
  for (const gateway of [0, 1])
    await expect(async () => expect((await entryAt(gateway)).replicas).toHaveLength(2)).toPass(patient)
  await untilAllWork([first, second])
  expect(await messagesAt(first)).toBeGreaterThan(0)
  expect(await messagesAt(second)).toBeGreaterThan(0)
})

test('after SIGKILL of one process, the other completes its tasks and the gateways keep serving', async () => {
  const ids = await Promise.all(Array.from({ length: 4 }, () => send('15')))
  for (const id of ids)
    await atEither().wait(id, { untilStates: ['working'], signal: AbortSignal.timeout(150_000) })
  await second.kill()
  for (let n = 0; n < 8; n += 1) ids.push(await send('1', clientAt(gatewayUrl(n % 2))))
  for (const id of ids) {
    expect((await ended(id)).status.state).toBe('completed')
    expect(isSound(await eventsOf(atEither(), id))).toBe(true)
  }
  second = await startAgent('agent-3')
  await untilAllWork([first, second])
})

test('after SIGKILL of one gateway, its clients reconnect to the other, whose streams continue', async () => {
  const whole = streamed(gatewayUrl(1), '25')
  const routed = streamed(gatewayUrl(1), '25', '/')
  const { targets } = balancer
  balancer.targets = targets.slice(0, 1)
  const moved = followed()
  await Promise.all([whole.begun, routed.begun, moved.begun])
  balancer.targets = targets
  await cluster.gateways[0]?.kill()

  token = await cluster.developmentToken(cluster.gateways[1]).get()
  const id = await send('1', clientAt(gatewayUrl(1)))
  expect((await clientAt(gatewayUrl(1)).wait(id)).status.state).toBe('completed')
  for (const stream of [whole, routed]) {
    const sequences = await stream.sequences
    expect(sequences).toEqual(sequences.map((_, at) => at))
    expect(await stream.last).toContain('"completed"')
  }
  expect(await moved.states).toEqual(['submitted', 'working', 'completed'])
})

test('a restarted gateway knows the tasks created while it was down, and all processes exit with code 0', async () => {
  const id = await send('1')
  await ended(id)
  await cluster.gateways[0]?.start()
  await expect(async () => expect((await entryAt(0)).status).toBe('ready')).toPass(patient)
  expect((await clientAt(gatewayUrl(0)).get(id)).status.state).toBe('completed')
  const { replicas } = await entryAt(0)
  expect(await second.stop()).toBe(0)
  // A killed process stays listed until its lease expires.
  await expect(async () => expect((await entryAt(0)).replicas.length).toBeLessThan(replicas.length)).toPass(
    patient,
  )
  expect(await first.stop()).toBe(0)
  for (const gateway of cluster.gateways) expect(await gateway.stop()).toBe(0)
})

/** `message/stream` on one connection, without reconnecting. */
function streamed(gateway: string, text: string, route = '/agents/worker/') {
  const parts = [{ kind: 'text', text: `${text} works` }]
  const message = { role: 'user', kind: 'message', messageId: crypto.randomUUID(), parts }
  const response = fetch(`${gateway}${route}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/stream', params: { message } }),
  })
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const frames = response.then(async ({ body }) => {
    let all = ''
    for await (const chunk of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
      all += chunk
      if (all.includes('"working"')) resolve()
    }
    return all.split('\n\n').filter((frame) => /^id: \d/m.test(frame))
  })
  return {
    begun: Promise.race([begun, frames]),
    sequences: frames.then((all) => all.map((frame) => Number(/^id: (\d+)/m.exec(frame)?.[1]))),
    last: frames.then((all) => all.at(-1) ?? ''),
  }
}

/** A stream through the balancer, with a client that reconnects. */
function followed() {
  const { promise: begun, resolve } = Promise.withResolvers<void>()
  const states = (async () => {
    const seen: string[] = []
    for await (const event of atEither().stream('25')) {
      if (event.kind === 'status-update') seen.push(event.status.state)
      if (seen.includes('working')) resolve()
    }
    return seen
  })()
  return { begun: Promise.race([begun, states]), states }
}
