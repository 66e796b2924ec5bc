import { setTimeout as wait } from 'node:timers/promises'
import { randomFrom } from '../chaos/plan.ts'
import { settled } from '../chaos/settled.ts'
import { type FailoverCluster, startFailoverCluster } from './cluster.ts'
import { type Findings, judge } from './judge.ts'
import { type Kill, Kills } from './kills.ts'
import { type Ledger, Load } from './load.ts'
import { Watch } from './watch.ts'

export interface FailoverOptions {
  /** Decides how long agents are down, and what the messages carry. */
  seed: number
  /** For how long messages are sent at the full rate; at least until the first agent that was killed is there again. */
  seconds: number
  /** Messages a second. Default 20. */
  rate?: number
  /** See `startFailoverCluster`. */
  logs?: string | undefined
  say: (text: string) => void
  /** Ends the load early. */
  signal?: AbortSignal
}

export interface FailoverFigures extends Ledger, Findings {
  kills: Kill[]
}

/** After the load: how often those that wait for work are sent some, and for how long at most. */
const sendEveryMs = 500
const workWithinMs = 180_000

/** Agents of one kind of task are killed under the load of messages that any of them can do; then every message is looked for. */
export async function failoverRun(options: FailoverOptions): Promise<FailoverFigures> {
  const { seed, seconds, rate = 20, say, logs, signal } = options
  await using cluster = await startFailoverCluster(logs)
  await using watch = new Watch(cluster)
  await known(cluster, watch)
  const load = new Load(cluster, randomFrom(seed))
  const { ledger } = load
  const kills = new Kills({ cluster, watch, ledger, random: randomFrom(seed + 1), say })
  const looking = setInterval(() => kills.look(), 50)
  const [noMoreKills, noMoreLoad] = [new AbortController(), new AbortController()]
  const timer = setTimeout(() => noMoreKills.abort(), seconds * 1000)
  signal?.addEventListener('abort', () => noMoreKills.abort())
  say(`a gateway and ${cluster.agents.length} agents are ready; ${rate} messages a second`)
  try {
    const sending = load.run(rate, noMoreLoad.signal)
    // A load that fails ends the run.
    await Promise.race([kills.run(noMoreKills.signal), sending])
    await Promise.race([until(noMoreKills.signal), sending])
    noMoreLoad.abort()
    await sending
    await workAgain(kills, load)
    say('every message was sent; looking for every task')
    await load.answered()
  } finally {
    clearTimeout(timer)
    clearInterval(looking)
    for (const stop of [noMoreKills, noMoreLoad]) stop.abort()
  }
  return { ...ledger, ...(await judge(cluster, ledger)), kills: kills.all }
}

/** Each that was killed is sent what it alone can do, now and then, until it gets it. */
async function workAgain(kills: Kills, load: Load): Promise<void> {
  const end = Date.now() + workWithinMs
  while (kills.waiting.length > 0 && Date.now() < end) {
    for (const agent of new Set(kills.waiting)) load.send(agent)
    await wait(sendEveryMs)
  }
}

async function known({ agents }: FailoverCluster, watch: Watch): Promise<void> {
  const count = () => agents.filter(({ slug }) => watch.isAside(slug) !== undefined).length
  const isSo = await settled(() => count() === agents.length, count, 60_000)
  if (!isSo) throw new Error('the registry does not know all agents')
}

function until(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}

/** What is not as it was promised; nothing where all is. */
export function wrongIn(figures: FailoverFigures): string[] {
  const { lost, double, refusedAndDone, undone, unclear, told, kills } = figures
  const lists = { lost, double, 'refused and done': refusedAndDone, 'completed without its work': undone }
  return [
    ...Object.entries(lists).flatMap(([name, all]) => all.map((one) => `${name}: ${one}`)),
    ...[...unclear].map(([said, times]) => `unclear: ${said} (${times} times)`),
    ...(told.length === 0 ? ['nothing was acknowledged'] : []),
    ...kills.flatMap(({ agent: { slug }, asideMs, workMs }) => [
      ...(asideMs === undefined ? [`${slug} was not set aside`] : []),
      ...(workMs === undefined ? [`${slug} got no work again`] : []),
    ]),
  ]
}
