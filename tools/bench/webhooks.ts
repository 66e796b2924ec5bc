/**
 * Measures `message/send` with and without webhooks at 200 tasks per second, with three events per task for one
 * receiver; the same with ten receivers, one of which hangs for 5 s; and the memory of 50,000 undelivered events. The
 * load has a fixed rate. Runs with and without webhooks alternate and their medians are compared, so that load on the
 * machine affects both. A run takes ten seconds, because the server occasionally pauses for some tens of milliseconds.
 * In four seconds, one such pause would decide the p99, and a run would contain one or none by chance.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { type Received, Receivers } from './servers/receivers.ts'
import { AgentUnderTest, sendParams } from './support/agent-under-test.ts'
import { httpRequest, LoadGenerator, type LoadResult } from './support/load.ts'
import { median, quick } from './support/measure.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'
import { tokenOf } from './support/tokens.ts'

const perSecond = 200
const eventsPerTask = 3
const turns = quick ? 3 : 7
const tasksPerTurn = perSecond * (quick ? 2 : 10)
const warmUp = quick ? 2000 : 4000
const undelivered = quick ? 6000 : 50_000
const connections = 64
const megabyte = 1024 * 1024
const mustHold = '"state":"submitted"'

interface Found {
  /** Expected number of events. */
  events: number
  /** CPU time of the agent, from the first measured task to the last delivery. */
  cpuMicrosPerTask: number
  sendP50Ms: number
  sendP99Ms: number
  deliveryP50Ms: number
  deliveryP99Ms: number
  lost: number
  outOfOrder: number
  repeated: number
}

using generator = new LoadGenerator()
const found = { ...(await withAndWithout()), 'ten receivers, one hangs': await withHanging() }
const medians = Object.fromEntries(Object.entries(found).map(([name, all]) => [name, mediansOf(all)]))
printFound(medians)
const memory = { none: await memoryWith(false), undelivered: await memoryWith(true) }
printTable(
  ['memory of the agent', 'RSS MB'],
  [
    [`${memory.none.tasks} tasks, no webhooks`, memory.none.rssMb.toFixed(0)],
    [`the same, ${memory.undelivered.queued} events undelivered`, memory.undelivered.rssMb.toFixed(0)],
  ],
)
const all = Object.values(found).flat()
const sum = (pick: (one: Found) => number) => all.reduce((total, one) => total + pick(one), 0)
const lost = sum((one) => one.lost)
const events = sum((one) => one.events)
expectAtMost(`lost of ${events} events`, lost, 0)
const outOfOrder = sum((one) => one.outOfOrder)
expectAtMost(`out of order of ${events} events`, outOfOrder, 0)
const p99 = (name: string, of: 'sendP99Ms' | 'deliveryP99Ms') => medians[name]?.[of] ?? Number.NaN
const with_ = p99('one receiver', 'sendP99Ms')
expectAtMost('message/send p99, with ÷ without webhooks', with_ / p99('without webhooks', 'sendP99Ms'), 1.3)
const others = p99('ten receivers, one hangs', 'deliveryP99Ms')
expectAtMost('delivery p99 to the others while one of ten hangs', others, 250, ' ms')
const more = memory.undelivered.rssMb - memory.none.rssMb
expectAtMost(`memory for ${memory.undelivered.queued} undelivered events`, more, 150, ' MB')
await saveResults('webhooks', { perSecond, eventsPerTask, medians, turns: found, memory })

type ReceiverOptions = Parameters<typeof Receivers.start>[0]

/** Both agents run throughout; one of them gets the load. */
async function withAndWithout() {
  await using stack = new AsyncDisposableStack()
  const without = stack.use(await warmedUp(undefined))
  const one = stack.use(await warmedUp({ count: 1, hanging: 0, hangMs: 0 }))
  const rounds = { 'without webhooks': [] as Found[], 'one receiver': [] as Found[] }
  for (let turn = 0; turn < turns; turn += 1) {
    const both = [
      async () => rounds['without webhooks'].push(await without.measure(tasksPerTurn)),
      async () => rounds['one receiver'].push(await one.measure(tasksPerTurn)),
    ]
    for (const measure of turn % 2 === 0 ? both : both.reverse()) await measure()
  }
  return rounds
}

async function withHanging(): Promise<Found[]> {
  await using subject = await warmedUp({ count: 10, hanging: 1, hangMs: 5000 })
  const rounds: Found[] = []
  for (let turn = 0; turn < 3; turn += 1) rounds.push(await subject.measure(tasksPerTurn))
  return rounds
}

/** A new, warmed-up agent with its receivers. */
async function warmedUp(options: ReceiverOptions | undefined) {
  await using stack = new AsyncDisposableStack()
  const receivers = options === undefined ? undefined : stack.use(await Receivers.start(options))
  const agent = stack.use(await start())
  const urls = (await receivers?.received())?.urls ?? []
  const load = { address: agent.address, requests: requestsTo(urls), connections, mustHold }
  const toOthers = options === undefined ? 0 : 1 - options.hanging / options.count
  let before = { expected: 0, outOfOrder: 0, repeated: 0 }
  const run = async (tasks: number, rate: number): Promise<Found> => {
    await receivers?.forgetTimes()
    const cpu = agent.server.cpuMicros
    const sent = await generator.run({ ...load, total: tasks, perSecond: rate })
    if (sent.accepted < tasks) throw new Error(`${tasks - sent.accepted} tasks were refused`)
    const events = tasks * eventsPerTask * toOthers
    const expected = before.expected + events
    const received = await receivers?.settled(expected)
    const cpuMicrosPerTask = (agent.server.cpuMicros - cpu) / tasks
    const since = before
    // A missing event counts once.
    before = { ...since, ...received, expected: received?.events ?? expected }
    return { events, cpuMicrosPerTask, ...foundIn(sent, received, { ...since, expected }) }
  }
  await run(warmUp, 1000)
  const open = stack.move()
  return {
    measure: (tasks: number) => run(tasks, perSecond),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

function foundIn(
  sent: LoadResult,
  received: Received | undefined,
  before: { expected: number; outOfOrder: number; repeated: number },
): Omit<Found, 'cpuMicrosPerTask' | 'events'> {
  return {
    sendP50Ms: sent.p50Ms,
    sendP99Ms: sent.p99Ms,
    deliveryP50Ms: received?.p50Ms ?? Number.NaN,
    deliveryP99Ms: received?.p99Ms ?? Number.NaN,
    lost: received === undefined ? 0 : before.expected - received.events,
    outOfOrder: (received?.outOfOrder ?? 0) - (received === undefined ? 0 : before.outOfOrder),
    repeated: (received?.repeated ?? 0) - (received === undefined ? 0 : before.repeated),
  }
}

/** RSS after enough tasks for the undelivered events, all for a receiver that never responds in time. */
async function memoryWith(webhooks: boolean) {
  await using stack = new AsyncDisposableStack()
  const receivers = stack.use(await Receivers.start({ count: 1, hanging: 1, hangMs: 60_000 }))
  const agent = stack.use(await start())
  const tasks = Math.ceil(undelivered / eventsPerTask)
  const requests = requestsTo(webhooks ? (await receivers.received()).urls : [])
  const { accepted } = await generator.run({
    address: agent.address,
    requests,
    connections,
    mustHold,
    total: tasks,
  })
  await agent.waitForCompleted(accepted)
  const queued = await queuedEvents(agent)
  // V8 releases unused memory some seconds after the load.
  await wait(quick ? 1000 : 15_000)
  return { tasks, queued, rssMb: agent.server.rssBytes / megabyte }
}

async function queuedEvents(agent: AgentUnderTest): Promise<number> {
  const metrics = await (await fetch(`${agent.address}/metrics`)).text()
  return Number(/^agent_webhook_events_queued\{[^}]*\} (\d+)$/m.exec(metrics)?.[1] ?? 0)
}

function start(): Promise<AgentUnderTest> {
  return AgentUnderTest.start({ env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } })
}

/** Requests for each receiver in turn, or requests without webhooks if there is no receiver. */
function requestsTo(urls: string[]): string[] {
  const configurations =
    urls.length === 0 ? [{}] : urls.map((url) => ({ push_notification_config: { id: randomUUID(), url } }))
  return configurations.map((configuration) =>
    httpRequest({
      path: '/',
      headers: { Authorization: `Bearer ${tokenOf(0)}` },
      body: { jsonrpc: '2.0', id: '1', method: 'message/send', params: { ...sendParams(), configuration } },
    }),
  )
}

function mediansOf(all: Found[]): Found {
  const of = (pick: (one: Found) => number) => median(all.map(pick))
  return {
    events: of((one) => one.events),
    cpuMicrosPerTask: of((one) => one.cpuMicrosPerTask),
    sendP50Ms: of((one) => one.sendP50Ms),
    sendP99Ms: of((one) => one.sendP99Ms),
    deliveryP50Ms: of((one) => one.deliveryP50Ms),
    deliveryP99Ms: of((one) => one.deliveryP99Ms),
    lost: of((one) => one.lost),
    outOfOrder: of((one) => one.outOfOrder),
    repeated: of((one) => one.repeated),
  }
}

function printFound(named: Record<string, Found>): void {
  const ms = (value: number) => (Number.isNaN(value) ? '' : value.toFixed(2))
  printTable(
    [
      `${perSecond} tasks/s`,
      'CPU µs/task',
      'send p50 ms',
      'send p99 ms',
      'delivery p50 ms',
      'delivery p99 ms',
      'lost',
      'out of order',
    ],
    Object.entries(named).map(([name, one]) => [
      name,
      one.cpuMicrosPerTask.toFixed(0),
      ...[one.sendP50Ms, one.sendP99Ms, one.deliveryP50Ms, one.deliveryP99Ms].map(ms),
      String(one.lost),
      String(one.outOfOrder),
    ]),
  )
}
