import { setTimeout as wait } from 'node:timers/promises'
import { randomFrom } from '../chaos/plan.ts'
import { settled } from '../chaos/settled.ts'
import { type FailoverCluster, startFailoverCluster } from './cluster.ts'
import { type Findings, judge } from './judge.ts'
import { type Kill, Kills } from './kills.ts'
import { type Ledger, Load } from './load.ts'
import { Watch } from './watch.ts'

export interface FailoverOptions {
  /** Determines how long agents are down, and what the messages contain. */
  seed: number
  /** Duration of the load at the full rate; it continues at least until the first killed agent is ready again. */
  seconds: number
  /** Messages per second. Default 20. */
  rate?: number
  /** Folder for one log file per process. */
  logs?: string | undefined
  say: (text: string) => void
  /** Ends the load early. */
  signal?: AbortSignal
}

export interface FailoverFigures extends Ledger, Findings {
  kills: Kill[]
}

/** Interval and time limit for messages to agents that wait for work after the load. */
const sendEveryMs = 500
const workWithinMs = 180_000

/** Kills agents while clients send messages that any of them can process. Then it checks every message. */
export async function failoverRun(options: FailoverOptions): Promise<FailoverFigures> {
  const { seed, seconds, rate = 20, say, logs, signal } = options
  await using cluster = await startFailoverCluster(logs)
  await using watch = new Watch(cluster)
  await expected(cluster, watch)
  const load = new Load(cluster, randomFrom(seed))
  const { ledger } = load
  const kills = new Kills({ cluster, watch, ledger, random: randomFrom(seed + 1), say })
  const looking = setInterval(() => kills.look(), 50)
  const [noMoreKills, noMoreLoad] = [new AbortController(), new AbortController()]
  const timer = setTimeout(() => noMoreKills.abort(), seconds * 1000)
  signal?.addEventListener('abort', () => noMoreKills.abort())
  say(`a gateway and ${cluster.agents.length} agents are ready; ${rate} messages per second`)
  try {
    const sending = load.run(rate, noMoreLoad.signal)
    // A failed load ends the run.
    await Promise.race([kills.run(noMoreKills.signal), sending])
    await Promise.race([until(noMoreKills.signal), sending])
    noMoreLoad.abort()
    await sending
    await workAgain(kills, load)
    say('every message was sent; checking every task')
    await load.answered()
  } finally {
    clearTimeout(timer)
    clearInterval(looking)
    for (const stop of [noMoreKills, noMoreLoad]) stop.abort()
  }
  return { ...ledger, ...(await judge(cluster, ledger)), kills: kills.all }
}

/** Sends messages that only the killed agents can do, until each of them has accepted one. */
async function workAgain(kills: Kills, load: Load): Promise<void> {
  const end = Date.now() + workWithinMs
  while (kills.waiting.length > 0 && Date.now() < end) {
    for (const agent of new Set(kills.waiting)) load.send(agent)
    await wait(sendEveryMs)
  }
}

async function expected({ agents }: FailoverCluster, watch: Watch): Promise<void> {
  const count = () => agents.filter(({ slug }) => watch.isEjected(slug) !== undefined).length
  const holds = await settled(() => count() === agents.length, count, 60_000)
  if (!holds) throw new Error('the registry does not know all agents')
}

function until(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}

/** Describes every finding. The list is empty if all checks pass. */
export function wrongIn(figures: FailoverFigures): string[] {
  const { lost, double, refusedAndDone, undone, unclear, acknowledged, kills } = figures
  const lists = { lost, double, 'refused and done': refusedAndDone, 'completed without its work': undone }
  return [
    ...Object.entries(lists).flatMap(([name, all]) => all.map((one) => `${name}: ${one}`)),
    ...[...unclear].map(([progress, times]) => `unclear: ${progress} (${times} times)`),
    ...(acknowledged.length === 0 ? ['nothing was acknowledged'] : []),
    ...kills.flatMap(({ agent: { slug }, ejectedMs, newWorkMs }) => [
      ...(ejectedMs === undefined ? [`${slug} was not ejected`] : []),
      ...(newWorkMs === undefined ? [`${slug} got no new work`] : []),
    ]),
  ]
}
