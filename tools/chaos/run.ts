import { setTimeout as wait } from 'node:timers/promises'
import { healthOf } from '@parley/e2e/harness/parley-process'
import { openBullmqScheduler } from '@parley/engine/queue/bullmq'
import { agentId } from '@parley/kit/did/did'
import { makeLog } from '@parley/kit/process/log'
import { WebhookReceiver } from '../testing/webhook-receiver.ts'
import type { Asking, Calm, Tally } from './asking.ts'
import { type Client, makeClient } from './clients.ts'
import { agentPath, type ChaosCluster, startChaosCluster } from './cluster.ts'
import { Faults } from './faults.ts'
import { judgePayments, type Payer, type PaymentFindings } from './judge-payments.ts'
import { judgeTasks, type TaskFindings } from './judge-tasks.ts'
import { load, type Told } from './load.ts'
import { type FaultKind, faultKinds, faultsOf, randomFrom } from './plan.ts'
import { settled } from './settled.ts'

export interface ChaosOptions {
  /** Determines the sequence of faults and the actions of clients. */
  seed: number
  /** Duration of the faults. Each kind occurs at least once. */
  seconds: number
  gateways?: number
  agents?: number
  /** Folder for a log file per process. */
  logs?: string | undefined
  say: (text: string) => void
  /** Ends the faults early. */
  signal?: AbortSignal
}

export interface ChaosFigures extends TaskFindings, PaymentFindings {
  seed: number
  /** Number of faults by kind. */
  faults: Partial<Record<FaultKind, number>>
  /** Number of acknowledged tasks. */
  tasks: number
  /** Number of them with a `long_running` webhook. */
  webhooks: number
  /** Requests that were retried after a clear refusal or a lost connection, by reason. */
  cameAgain: Record<string, number>
  /** Requests that were refused because of a wrong client clock. */
  wrongClocks: number
  /** Requests that were accepted in spite of a wrong client clock. */
  takenInSpiteOfClock: number
  /** Processes whose `/health` did not name an outage. */
  unsaid: string[]
  /** Errors during an outage that did not name it, with their number. */
  unclear: Record<string, number>
  /** Processes that exited on their own. */
  fell: string[]
  /** Jobs left in the queue. */
  queued: number
  /** Processes whose `/health` is not 200. */
  unhealthy: string[]
}

const roles = ['signs', 'pays', 'plain', 'pays', 'signs', 'plain'] as const
const greenWithinMs = 60_000
/** The queue counts its jobs every second. */
const countedMs = 2500

/**
 * Runs gateways and processes of an agent on MongoDB and Redis under the load of clients that record what was
 * acknowledged, and injects one fault after the other. Then it compares the records with the stored state. The same
 * seed gives the same faults; their effect depends on the machine.
 */
export async function chaosRun(options: ChaosOptions): Promise<ChaosFigures> {
  const { seed, gateways = 2, agents = 3, say, logs } = options
  await using receiver = await WebhookReceiver.start()
  await using chaos = await startChaosCluster({ gateways, agents, logs })
  const { cluster } = chaos
  const clients = await Promise.all(roles.map((role, i) => makeClient(cluster, `client-${i + 1}`, role)))
  say(`${gateways} gateways, ${agents} processes of the agent and ${clients.length} clients are ready`)
  const stop = new AbortController()
  const calm: Calm = { since: undefined }
  const tally: Tally = { told: 0, unclear: new Map(), away: new Map() }
  const askings = clients.map((client, i): Asking => {
    return { client, random: randomFrom(seed + 1 + i), tally, calm }
  })
  const loads = Promise.all(
    askings.map((asking) => load({ ...asking, receiverUrl: receiver.url, stop: stop.signal })),
  )
  // A failed load ends the run, not the process.
  loads.catch(() => stop.abort())
  const faults = new Faults(chaos, clients)
  const soFar = () => `${tally.told} tasks, ${sumOf(tally.away)} requests retried`
  await letGoWrong(faults, { ...options, say: (text) => say(`${text} (${soFar()})`) }, stop.signal)
  await faults.over()
  say('all faults are over; checking every task')
  calm.since = Date.now()
  stop.abort()
  const told = await loads
  const findings = await judge(chaos, askings, { told, receiver, say })
  return { seed, faults: faults.made, ...findings, ...ofClients(clients, tally), unsaid: faults.unsaid }
}

async function letGoWrong(
  faults: Faults,
  { seed, seconds, say, signal }: ChaosOptions,
  failed: AbortSignal,
): Promise<void> {
  const endsAt = Date.now() + seconds * 1000
  for (const fault of faultsOf(seed)) {
    await wait(fault.afterMs)
    const missing = faultKinds.some((kind) => faults.made[kind] === undefined)
    if (failed.aborted || signal?.aborted === true || (Date.now() >= endsAt && !missing)) return
    say(`${fault.kind} ${await faults.make(fault)}`)
  }
}

interface Known {
  /** By client. */
  told: Told[][]
  receiver: WebhookReceiver
  say: ChaosOptions['say']
}

async function judge(chaos: ChaosCluster, askings: Asking[], { told, receiver, say }: Known) {
  const { cluster } = chaos
  const findings: TaskFindings = { lost: [], double: [], stuck: [], badEvents: [], badWebhooks: [] }
  const all = await Promise.all(
    askings.map((asking, i) => judgeTasks(asking, told[i] ?? [], { receiver, findings })),
  )
  const payers = askings.flatMap(({ client: { purse, paidInVain } }, i): Payer[] =>
    purse === undefined
      ? []
      : [{ address: purse.address, paidInVain, told: told[i] ?? [], tasks: all[i] ?? [] }],
  )
  say('tasks, events and webhooks are checked')
  const payments = await judgePayments(cluster, payers)
  say('payments are checked')
  const every = [...cluster.gateways, ...cluster.agents]
  const unhealthy: string[] = []
  const green = every.map(async (one) => {
    const isGreen = async () => (await healthOf(one)).status === 200
    if (!(await settled(isGreen, () => 0, greenWithinMs))) unhealthy.push(one.name)
  })
  await Promise.all(green)
  const fell = every.flatMap(({ name, unexpectedExits: times }) => (times === 0 ? [] : [`${name}: ${times}`]))
  const flat = told.flat()
  return {
    tasks: flat.length,
    webhooks: flat.filter(({ webhook }) => webhook).length,
    ...findings,
    ...payments,
    fell,
    queued: await queued(chaos),
    unhealthy,
  }
}

function ofClients(clients: Client[], { unclear, away }: Tally) {
  const sum = (figure: (client: Client) => number) => clients.reduce((all, one) => all + figure(one), 0)
  return {
    cameAgain: Object.fromEntries(away),
    wrongClocks: sum(({ refusedByClock }) => refusedByClock),
    takenInSpiteOfClock: sum(({ takenInSpiteOfClock }) => takenInSpiteOfClock),
    unclear: Object.fromEntries(unclear),
  }
}

function sumOf(counts: Map<string, number>): number {
  return [...counts.values()].reduce((sum, one) => sum + one, 0)
}

async function queued({ cluster: { url }, servers }: ChaosCluster): Promise<number> {
  const answer = await fetch(`${url}${agentPath}/.well-known/agent.json`)
  const { did } = (await answer.json()) as { did: string }
  const log = makeLog({ level: 'silent', name: 'chaos' })
  const at = { url: servers.redis.url, log, agentId: agentId(did), concurrency: 1 }
  await using queue = await openBullmqScheduler(at)
  await wait(countedMs)
  return queue.waiting
}

/** Describes every finding; empty when all checks pass. */
export function wrongIn(figures: ChaosFigures): string[] {
  const { tasks, payments, wrongClocks, faults, takenInSpiteOfClock, queued: left, unclear } = figures
  const { lost, double, stuck, badEvents, badWebhooks, unequal, unsaid, fell, unhealthy } = figures
  const lists = { lost, double, stuck, badEvents, badWebhooks, unequal, unsaid, fell, unhealthy }
  const counts = { takenInSpiteOfClock, queued: left }
  return [
    ...Object.entries(lists).flatMap(([name, all]) => all.map((one) => `${name}: ${one}`)),
    ...Object.entries(counts).flatMap(([name, count]) => (count === 0 ? [] : [`${name}: ${count}`])),
    ...Object.entries(unclear).map(([said, times]) => `unclear: ${said} (${times} times)`),
    ...(tasks === 0 ? ['no task was acknowledged'] : []),
    ...(payments === 0 ? ['nothing was paid'] : []),
    ...((faults.clock ?? 0) > 0 && wrongClocks === 0 ? ['no request was refused for a wrong clock'] : []),
  ]
}
