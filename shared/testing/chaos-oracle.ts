import { setTimeout as wait } from 'node:timers/promises'
import { AgentClient } from '../client/client.ts'
import { RpcError } from '../client/rpc-error.ts'
import { agentId } from '../discovery/agent-card.ts'
import { makeLog } from '../process/log.ts'
import { isTerminal } from '../protocol/task.ts'
import { openBullmqScheduler } from '../scheduler/bullmq.ts'
import { type AgentProcesses, eventsOf, isSound, type Servers } from './agent-processes.ts'
import type { Told } from './chaos-client.ts'
import { countDoubled } from './crash-run.ts'
import type { WebhookReceiver } from './webhook-receiver.ts'

export interface Verdict {
  /** Tasks that a client was told of. */
  tasks: number
  /** Of these: not there any more. */
  lost: number
  /** Texts with more than one task. */
  double: number
  /** Not at their end although nothing went wrong any more. */
  stuck: number
  /** Event numbers missing, told twice, or behind the end. */
  badEvents: number
  webhooks: number
  /** Tasks whose `long_running` webhook lacks an event, or had them out of order. */
  badWebhooks: number
  /** Jobs that still wait. */
  queued: number
  /** Processes whose `/health` is not 200. */
  unhealthy: number
  /** Calls that were refused as if something were away (503) when nothing was. */
  refused: number
}

/** For all that is left to do once nothing goes wrong any more. */
const patienceMs = 60_000
/** The queue counts its jobs every second. */
const countedMs = 2500

interface Seen {
  agents: AgentProcesses
  servers: Servers
  receiver: WebhookReceiver
  /** What each client was told, by its name. */
  told: Map<string, Told[]>
}

/** Holds what clients were told against what is there, once nothing goes wrong any more. */
export async function judge({ agents, servers, receiver, told }: Seen): Promise<Verdict> {
  const until = Date.now() + patienceMs
  const verdict: Verdict = {
    tasks: 0,
    lost: 0,
    double: 0,
    stuck: 0,
    badEvents: 0,
    webhooks: 0,
    badWebhooks: 0,
    queued: 0,
    unhealthy: 0,
    refused: 0,
  }
  await settled(async () => (await unhealthy(agents)) === 0, until)
  for (const [name, all] of told) {
    const [client] = agents.callers(name) as [AgentClient]
    for (const one of all) await judgeTask(client, one, { receiver, until, verdict })
    verdict.double += await answered(() => countDoubled(client), until, verdict)
  }
  verdict.unhealthy = await unhealthy(agents)
  verdict.queued = await queued(agents, servers)
  return verdict
}

async function judgeTask(
  client: AgentClient,
  { taskId, webhook }: Told,
  { receiver, until, verdict }: { receiver: WebhookReceiver; until: number; verdict: Verdict },
): Promise<void> {
  verdict.tasks += 1
  try {
    if (!(await atItsEnd(client, taskId, until))) {
      verdict.stuck += 1
      return
    }
  } catch (error) {
    if (!(error instanceof RpcError) || error.code !== -32001) throw error
    verdict.lost += 1
    return
  }
  const events = await answered(() => eventsOf(client, taskId), until, verdict)
  if (!isSound(events)) verdict.badEvents += 1
  if (!webhook) return
  verdict.webhooks += 1
  const wanted = events.map(({ event_id }) => event_id).join()
  const sent = () =>
    receiver.events.filter((event) => event.task_id === taskId).map(({ event_id }) => event_id)
  await settled(async () => sent().length >= events.length, until)
  if (sent().join() !== wanted) verdict.badWebhooks += 1
}

/** Answers the question of a paused task. */
async function atItsEnd(client: AgentClient, taskId: string, until: number): Promise<boolean> {
  const signal = AbortSignal.timeout(Math.max(until - Date.now(), 1000))
  try {
    let task = await client.wait(taskId, { signal })
    if (task.status.state === 'input-required') {
      await client.send({ text: 'go', taskId }, undefined, { signal })
      task = await client.wait(taskId, { signal })
    }
    return isTerminal(task.status.state)
  } catch (error) {
    if (signal.aborted) return false
    throw error
  }
}

async function unhealthy({ all }: AgentProcesses): Promise<number> {
  const states = await Promise.all(
    all.map(({ url }) =>
      fetch(`${url}/health`, { signal: AbortSignal.timeout(3000) }).then(
        ({ ok }) => ok,
        () => false,
      ),
    ),
  )
  return states.filter((ok) => !ok).length
}

async function queued({ all }: AgentProcesses, { redis }: Servers): Promise<number> {
  const card = (await (await fetch(`${all[0]?.url}/.well-known/agent.json`)).json()) as { did: string }
  const log = makeLog({ level: 'silent', name: 'chaos' })
  await using queue = await openBullmqScheduler({
    url: redis.url,
    log,
    agentId: agentId(card.did),
    concurrency: 1,
  })
  await wait(countedMs)
  return queue.waiting
}

/** A question is asked again as a client would; that it had to be is told. */
async function answered<T>(ask: () => Promise<T>, until: number, verdict: Verdict): Promise<T> {
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (!(error instanceof RpcError) || error.code !== -32042 || Date.now() > until) throw error
      verdict.refused += 1
      await wait(200)
    }
  }
}

async function settled(isSo: () => Promise<boolean>, until: number): Promise<void> {
  while (!(await isSo()) && Date.now() < until) await wait(50)
}
