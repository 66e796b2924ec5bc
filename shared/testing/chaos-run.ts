import { setTimeout as wait } from 'node:timers/promises'
import { AgentProcesses, startServers } from './agent-processes.ts'
import { chaosClient, type Told } from './chaos-client.ts'
import { Faults } from './chaos-faults.ts'
import { judge, type Verdict } from './chaos-oracle.ts'
import { type FaultKind, faultsOf, randomFrom } from './chaos-plan.ts'
import { WebhookReceiver } from './webhook-receiver.ts'

export interface ChaosOptions {
  /** Decides which faults come when, and what clients do. */
  seed: number
  /** For how long faults come. */
  seconds: number
  processes?: number
  clients?: number
  say: (text: string) => void
}

export interface ChaosFigures extends Verdict {
  seed: number
  faults: Partial<Record<FaultKind, number>>
  /** How often the `/health` of a process did not name what was away. */
  unsaid: number
  /** Errors of the server's own that said nothing of an outage, by code. */
  unclear: Record<string, number>
}

/**
 * Several processes of one agent over MongoDB and Redis, under the load of clients that keep their own record of what they
 * were told, while one thing after the other goes wrong. The same seed makes the same faults; what they meet depends on the
 * machine.
 */
export async function chaosRun(options: ChaosOptions): Promise<ChaosFigures> {
  const { seed, seconds, processes = 3, clients = 6, say } = options
  await using servers = await startServers()
  await using receiver = await WebhookReceiver.start()
  const env = { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' }
  await using agents = await AgentProcesses.start(processes, servers, env)
  const stop = new AbortController()
  const unclear = new Map<number, number>()
  const names = Array.from({ length: clients }, (_, i) => `did:parley:chaos:agent:${i}`)
  const loads = names.map(async (name, i) => {
    const random = randomFrom(seed + 1 + i)
    const at = { clients: agents.callers(name), random, unclear }
    const told = await chaosClient({ ...at, receiverUrl: receiver.url, stop: stop.signal })
    return [name, told] as const
  })
  // A load that fails ends the run, not the process.
  const failed = Promise.all(loads)
  failed.catch(() => stop.abort())
  const faults: ChaosFigures['faults'] = {}
  const making = new Faults(agents, servers)
  const endsAt = Date.now() + seconds * 1000
  for (const fault of faultsOf(seed, processes)) {
    await wait(fault.afterMs)
    if (Date.now() >= endsAt || stop.signal.aborted) break
    const { kind, victim } = fault
    say(`${kind}${kind === 'kill' || kind === 'freeze' ? ` of process ${victim + 1}` : ''}`)
    if (await making.make(fault)) faults[kind] = (faults[kind] ?? 0) + 1
  }
  await making.over()
  stop.abort()
  say('no more faults; looking for every task')
  const told = new Map<string, Told[]>(await failed)
  const verdict = await judge({ agents, servers, receiver, told })
  return { seed, faults, unsaid: making.unsaid, ...verdict, unclear: Object.fromEntries(unclear) }
}

/** What must be 0, whatever went wrong. */
export function isRight(figures: ChaosFigures): boolean {
  const { lost, double, stuck, badEvents, badWebhooks, queued, unhealthy, unsaid, unclear } = figures
  const wrong = [
    lost,
    double,
    stuck,
    badEvents,
    badWebhooks,
    queued,
    unhealthy,
    unsaid,
    ...Object.values(unclear),
  ]
  return figures.tasks > 0 && wrong.every((count) => count === 0)
}
