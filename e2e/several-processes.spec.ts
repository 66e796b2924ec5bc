import { AgentClient, ConnectionError, RpcError, type WireTask } from '@parley/client/internal/client'
import { eventsOf, isSound } from '@parley/tools/testing/agent-processes'
import { expect } from '@playwright/test'
import { skippedWithoutServers, test } from './standing.ts'
import { TwoGateways } from './two-gateways.ts'

test.describe.configure({ mode: 'serial' })
skippedWithoutServers()

type Started = Awaited<ReturnType<TwoGateways['startAgent']>>

/** Whatever the machine does beside. */
const patient = { timeout: 100_000, intervals: [100] }

let house: TwoGateways
let first: Started
let second: Started
let token: string

test.beforeAll(async ({ standing }) => {
  house = await TwoGateways.start(standing)
  token = await house.token(0)
  first = await house.startAgent()
})
test.afterAll(async () => {
  await house?.[Symbol.asyncDispose]()
})

const clientAt = (url: string) => new AgentClient({ url: `${url}/agents/worker`, token })
const atEither = () => clientAt(house.balancer.url)
const ended = (id: string) => patiently(() => atEither().wait(id, { signal: AbortSignal.timeout(150_000) }))
const textOf = (task: WireTask) => JSON.stringify(task.artifacts)
const isBy = ({ process }: Started) => {
  const end = new RegExp(`\\b${process.pid}"`)
  return (task: WireTask) => end.test(textOf(task))
}

/** As a client should: told that it could not be served, or cut off by a process that died, it asks again. */
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

/** Several tasks at once, again and again, until each of these has completed one. */
async function untilAllWork(processes: Started[]): Promise<void> {
  const tasks: WireTask[] = []
  await expect(async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, () => send('1')))
    tasks.push(...(await Promise.all(ids.map(ended))))
    for (const { status } of tasks) expect(status.state).toBe('completed')
    for (const one of processes) expect(tasks.some(isBy(one))).toBe(true)
  }).toPass(patient)
}

async function entryAt(gateway: number) {
  const response = await fetch(`${house.gatewayUrl(gateway)}/registry/agents/worker`)
  return (await response.json()) as { status: string; verified: boolean; replicas: unknown[] }
}

/** How many messages a process itself was sent. */
async function messagesAt({ url }: Started): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const lines = text
    .split('\n')
    .filter((line) => /^http_requests_total\{.*rpc_method="message\/send"/.test(line))
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

test('a process of the agent that is started by hand joins by plain HTTP; both gateways know it', async () => {
  for (const gateway of [0, 1])
    await expect(async () =>
      expect(await entryAt(gateway)).toMatchObject({ status: 'ready', verified: true }),
    ).toPass(patient)
  expect((await ended(await send('1'))).status.state).toBe('completed')
})

test('a second one with the same key, store and Redis is a replica: both are sent messages, both work', async () => {
  second = await house.startAgent()
  for (const gateway of [0, 1])
    await expect(async () => expect((await entryAt(gateway)).replicas).toHaveLength(2)).toPass(patient)
  await untilAllWork([first, second])
  expect(await messagesAt(first)).toBeGreaterThan(0)
  expect(await messagesAt(second)).toBeGreaterThan(0)
})

test('kill -9 of one: the gateway goes on, and the other completes what it was at', async () => {
  const ids = await Promise.all(Array.from({ length: 4 }, () => send('15')))
  for (const id of ids)
    await atEither().wait(id, { untilStates: ['working'], signal: AbortSignal.timeout(150_000) })
  await second.process.kill()
  for (let n = 0; n < 8; n += 1) ids.push(await send('1', clientAt(house.gatewayUrl(n % 2))))
  for (const id of ids) {
    expect((await ended(id)).status.state).toBe('completed')
    expect(isSound(await eventsOf(atEither(), id))).toBe(true)
  }
  second = await house.startAgent()
  await untilAllWork([first, second])
})

test('kill -9 of one of two gateways: clients and streams at the other go on, clients of the dead one go over', async () => {
  const whole = streamed(house.gatewayUrl(1), '25')
  const routed = streamed(house.gatewayUrl(1), '25', '/')
  house.balancer.targets = [house.ports[0] as number]
  const moved = followed()
  await Promise.all([whole.begun, routed.begun, moved.begun])
  house.balancer.targets = house.ports
  await house.gateways[0]?.kill()

  token = await house.token(1)
  const id = await send('1', clientAt(house.gatewayUrl(1)))
  expect((await clientAt(house.gatewayUrl(1)).wait(id)).status.state).toBe('completed')
  for (const stream of [whole, routed]) {
    const sequences = await stream.sequences
    expect(sequences).toEqual(sequences.map((_, at) => at))
    expect(await stream.last).toContain('"completed"')
  }
  expect(await moved.states).toEqual(['submitted', 'working', 'completed'])
})

test('a gateway that was away knows what was done meanwhile; all stop in peace', async () => {
  const id = await send('1')
  await ended(id)
  await house.startGateway(0)
  await expect(async () => expect((await entryAt(0)).status).toBe('ready')).toPass(patient)
  expect((await clientAt(house.gatewayUrl(0)).get(id)).status.state).toBe('completed')
  const { replicas } = await entryAt(0)
  expect(await second.process.stop()).toBe(0)
  // The one that was killed may be listed for its lease, and two more.
  await expect(async () => expect((await entryAt(0)).replicas.length).toBeLessThan(replicas.length)).toPass(
    patient,
  )
  expect(await first.process.stop()).toBe(0)
  for (const gateway of house.gateways) expect(await gateway.stop()).toBe(0)
})

/** `message/stream` on one connection, which nobody takes up again when it breaks. */
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

/** A stream through the balancer that its client takes up again. */
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
