import { setTimeout as wait } from 'node:timers/promises'
import { healthOf } from '@parley/e2e/harness/parley-process'
import { openBullmqScheduler } from '@parley/engine/queue/bullmq'
import { agentId } from '@parley/kit/did/did'
import { makeLog } from '@parley/kit/process/log'
import { WebhookReceiver } from '../testing/webhook-receiver.ts'
import { type Client, makeClient } from './clients.ts'
import { agentPath, type ChaosCluster, startChaosCluster } from './cluster.ts'
import { Faults } from './faults.ts'
import { judgePayments, type Payer, type PaymentFindings } from './judge-payments.ts'
import { judgeTasks, noFindings, type TaskFindings } from './judge-tasks.ts'
import { type Acknowledged, load } from './load.ts'
import { type FaultKind, faultKinds, faultsOf, randomFrom } from './plan.ts'
import type { ClientRun, Recovery, Tally } from './retry.ts'
import { settled } from './settled.ts'

export interface ChaosOptions {
  /** Determines the sequence of faults and the clients' actions. */
  seed: number
  /** Duration of the faults. Each kind occurs at least once. */
  seconds: number
  gateways?: number
  agents?: number
  /** Folder for one log file per process. */
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
  /** Number of acknowledged tasks with a `long_running` webhook. */
  webhooks: number
  /** Number of requests retried after a clear refusal or a lost connection, by reason. */
  retried: Record<string, number>
  /** Number of requests refused because of a wrong client clock. */
  wrongClocks: number
  /** Number of requests accepted in spite of a wrong client clock. */
  acceptedDespiteClock: number
  /** Processes that did not report an outage in `/health`. */
  unreportedOutages: string[]
  /** Number of errors during an outage that did not report it, by text. */
  unclear: Record<string, number>
  /** Processes that exited on their own. */
  unexpectedExits: string[]
  /** Number of jobs left in the queue. */
  queued: number
  /** Processes that return a status other than 200 for `/health`. */
  unhealthy: string[]
}

const roles = ['signs', 'pays', 'plain', 'a2a', 'pays', 'signs', 'plain', 'a2a'] as const
const greenWithinMs = 60_000
/** Time to wait for the job count, which the queue updates every second. */
const countedMs = 2500
/** A job of a task that another process has run is delivered again when that lease has expired (`leaseTimes.shared`). */
const redeliveredWithinMs = 20_000

/**
 * Runs gateways and processes of an agent on MongoDB and Redis while clients send requests and record the
 * acknowledgements, and injects one fault after the other. Then it compares the records with the stored state. The same
 * seed gives the same faults, but their effect depends on the machine.
 */
export async function chaosRun(options: ChaosOptions): Promise<ChaosFigures> {
  const { seed, gateways = 2, agents = 3, say, logs } = options
  await using receiver = await WebhookReceiver.start()
  await using chaos = await startChaosCluster({ gateways, agents, logs })
  const { cluster } = chaos
  const clients = await Promise.all(roles.map((role, i) => makeClient(cluster, `client-${i + 1}`, role)))
  say(`${gateways} gateways, ${agents} processes of the agent and ${clients.length} clients are ready`)
  const stop = new AbortController()
  const recovery: Recovery = { since: undefined }
  const tally: Tally = { acknowledged: 0, unclear: new Map(), outages: new Map() }
  const runs = clients.map((client, i): ClientRun => {
    return { client, random: randomFrom(seed + 1 + i), tally, recovery }
  })
  const loads = Promise.all(runs.map((run) => load({ ...run, receiverUrl: receiver.url, stop: stop.signal })))
  // A failed load ends the run, not the process.
  loads.catch(() => stop.abort())
  const faults = new Faults(chaos, clients)
  const soFar = () => `${tally.acknowledged} tasks, ${sumOf(tally.outages)} requests retried`
  await injectFaults(faults, { ...options, say: (text) => say(`${text} (${soFar()})`) }, stop.signal)
  await faults.over()
  say('all faults are over; checking every task')
  recovery.since = Date.now()
  stop.abort()
  const acknowledged = await loads
  const findings = await judge(chaos, runs, { acknowledged, receiver, say })
  return {
    seed,
    faults: faults.made,
    ...findings,
    ...ofClients(clients, tally),
    unreportedOutages: faults.unreportedOutages,
  }
}

async function injectFaults(
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

interface JudgeInput {
  /** The acknowledged tasks of each client. */
  acknowledged: Acknowledged[][]
  receiver: WebhookReceiver
  say: ChaosOptions['say']
}

async function judge(chaos: ChaosCluster, runs: ClientRun[], { acknowledged, receiver, say }: JudgeInput) {
  const { cluster } = chaos
  const findings = noFindings()
  const all = await Promise.all(
    runs.map((run, i) => judgeTasks(run, acknowledged[i] ?? [], { receiver, findings })),
  )
  const payers = runs.flatMap(({ client: { purse, paidWithoutTask } }, i): Payer[] =>
    purse === undefined
      ? []
      : [
          {
            address: purse.address,
            paidWithoutTask,
            acknowledged: acknowledged[i] ?? [],
            tasks: all[i] ?? [],
          },
        ],
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
  const unexpectedExits = every.flatMap(({ name, unexpectedExits: times }) =>
    times === 0 ? [] : [`${name}: ${times}`],
  )
  const flat = acknowledged.flat()
  return {
    tasks: flat.length,
    webhooks: flat.filter(({ webhook }) => webhook).length,
    ...findings,
    ...payments,
    unexpectedExits,
    queued: await queued(chaos),
    unhealthy,
  }
}

function ofClients(clients: Client[], { unclear, outages }: Tally) {
  const sum = (figure: (client: Client) => number) => clients.reduce((all, one) => all + figure(one), 0)
  return {
    retried: Object.fromEntries(outages),
    wrongClocks: sum(({ refusedByClock }) => refusedByClock),
    acceptedDespiteClock: sum(({ acceptedDespiteClock }) => acceptedDespiteClock),
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
  const left = () => queue.waiting
  await settled(() => left() === 0, left, redeliveredWithinMs)
  return left()
}

/** Describes every finding. The list is empty if all checks pass. */
export function wrongIn(figures: ChaosFigures): string[] {
  const { tasks, payments, wrongClocks, faults, acceptedDespiteClock, queued: left, unclear } = figures
  const {
    lost,
    double,
    stuck,
    badEvents,
    badWebhooks,
    badLists,
    unequal,
    unreportedOutages,
    unexpectedExits,
    unhealthy,
  } = figures
  const lists = {
    lost,
    double,
    stuck,
    badEvents,
    badWebhooks,
    badLists,
    unequal,
    unreportedOutages,
    unexpectedExits,
    unhealthy,
  }
  const counts = { acceptedDespiteClock, queued: left }
  return [
    ...Object.entries(lists).flatMap(([name, all]) => all.map((one) => `${name}: ${one}`)),
    ...Object.entries(counts).flatMap(([name, count]) => (count === 0 ? [] : [`${name}: ${count}`])),
    ...Object.entries(unclear).map(([progress, times]) => `unclear: ${progress} (${times} times)`),
    ...(tasks === 0 ? ['no task was acknowledged'] : []),
    ...(payments === 0 ? ['nothing was paid'] : []),
    ...((faults.clock ?? 0) > 0 && wrongClocks === 0 ? ['no request was refused for a wrong clock'] : []),
  ]
}
