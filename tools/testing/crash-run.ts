import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { AgentClient, type WireEvent } from '@parley/client/internal/client'
import { RpcError } from '@parley/client/internal/rpc-error'
import { isTerminal } from '@parley/wire/model/task'
import { KillableAgent } from './killable-agent.ts'

export interface CrashFigures {
  kills: number
  /** Number of acknowledged tasks. */
  accepted: number
  /** Number of acknowledged tasks that no longer exist. */
  lost: number
  /** Number of tasks that do not end after the last kill. */
  stuck: number
  /** Number of tasks with wrong event numbers, artifacts after the final status, or a repeated `working`. */
  badEvents: number
  /** Number of Idempotency-Keys with more than one task. */
  doubled: number
  completed: number
  canceled: number
  /** Number of tasks that failed after three interrupted runs. */
  failed: number
}

/** The first word of the text selects what the handler does. */
const source = `
const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => { clearTimeout(timer); resolve() })
})
export default {
  name: 'crash test',
  description: 'Works at different speeds',
  skills: [{ id: 'work', name: 'Work', description: 'Works' }],
  concurrency: 16,
  async *handle({ text, signal, ask, history }) {
    const kind = text.split(' ')[0]
    if (kind === 'slow') await pause(50 + Math.random() * 250, signal)
    if (kind === 'stream') for (let i = 0; i < 5; i += 1) { yield i + ' '; await pause(20, signal) }
    if (kind === 'big') yield 'x'.repeat(300_000)
    if (kind === 'ask' && history.length === 1) return yield ask('go on?')
    yield 'did ' + text
  },
}
`
const kinds = ['fast', 'fast', 'slow', 'stream', 'big', 'ask', 'cancel']

/** The task ids of one client, by Idempotency-Key. */
interface Acknowledged {
  taskId: string
  key: string
}

/**
 * Repeatedly kills an agent at random moments while several clients send requests. Then it checks every acknowledged
 * task with all its events.
 */
export async function crashRun(options: {
  kills: number
  clients: number
  say: (text: string) => void
}): Promise<CrashFigures> {
  await using agent = await KillableAgent.start(source)
  const stop = new AbortController()
  const clients = Array.from({ length: options.clients }, (_, i) => {
    const token = agent.identityProvider.issue(`did:parley:crash:agent:${i}`)
    return new AgentClient({ url: agent.url, token, requestTimeoutMs: 10_000 })
  })
  const acknowledged: Acknowledged[][] = clients.map(() => [])
  const loads = clients.map((client, i) => load(client, acknowledged[i] as Acknowledged[], stop.signal))
  const acknowledgedCount = () => acknowledged.reduce((sum, one) => sum + one.length, 0)
  for (let kill = 1; kill <= options.kills; kill += 1) {
    // Kills the agent at a random moment, but only under load, even on a slow machine.
    const enough = acknowledgedCount() + 5 * options.clients
    while (acknowledgedCount() < enough) await pause(10)
    await pause(Math.random() * 500)
    await agent.kill()
    await agent.start()
    options.say(`kill ${kill}: up again`)
  }
  await pause(300)
  stop.abort()
  await Promise.all(loads)
  const perClient = await Promise.all(clients.map((client, i) => inspect(client, acknowledged[i] ?? [])))
  const none = {
    accepted: 0,
    lost: 0,
    stuck: 0,
    badEvents: 0,
    doubled: 0,
    completed: 0,
    canceled: 0,
    failed: 0,
  }
  const sum = perClient.reduce((total, one) => {
    for (const name of Object.keys(none) as (keyof typeof none)[]) total[name] += one[name]
    return total
  }, none)
  // Checks that the database can be opened again and the agent exits cleanly.
  await agent.kill()
  await agent.start()
  const code = await agent.stop()
  if (code !== 0) throw new Error(`the agent exited with ${code}: ${agent.output}`)
  return { kills: options.kills, ...sum }
}

/** Sends messages one after the other. Repeats a message that gets no response, with the same Idempotency-Key. */
async function load(client: AgentClient, acknowledged: Acknowledged[], stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    const key = randomUUID()
    const kind = kinds[Math.floor(Math.random() * kinds.length)] ?? 'fast'
    const message = { text: `${kind} ${key}`, messageId: randomUUID() }
    const task = await persistently(() =>
      client.send(message, undefined, { headers: { 'idempotency-key': key } }),
    )
    acknowledged.push({ taskId: task.id, key })
    if (kind === 'cancel') await client.cancel(task.id).catch(() => {})
    await pause(Math.random() * 10)
  }
}

/** Retries until there is a response, because the agent may be down or may not reach its OAuth server. */
async function persistently<T>(attempt: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (signal?.aborted || (error instanceof RpcError && error.code !== 0 && error.status < 500))
        throw error
      await pause(30)
    }
  }
}

type Found = Omit<CrashFigures, 'kills'>

async function inspect(client: AgentClient, acknowledged: Acknowledged[]): Promise<Found> {
  const found: Found = {
    accepted: acknowledged.length,
    lost: 0,
    stuck: 0,
    badEvents: 0,
    doubled: await countDoubled(client),
    completed: 0,
    canceled: 0,
    failed: 0,
  }
  const deadline = AbortSignal.timeout(60_000)
  for (const { taskId, key } of acknowledged) {
    try {
      await persistently(() => bringToEnd(client, taskId, key, deadline), deadline)
      const events = await persistently(() => eventsOf(client, taskId, deadline), deadline)
      const last = events.at(-1)
      if (!isSound(events)) found.badEvents += 1
      const state = last?.kind === 'status-update' ? last.status.state : 'working'
      if (state === 'completed' || state === 'canceled' || state === 'failed') found[state] += 1
      else found.stuck += 1
    } catch (error) {
      if (error instanceof RpcError && error.code === -32001) found.lost += 1
      else if (deadline.aborted) found.stuck += 1
      else throw error
    }
  }
  return found
}

/** Answers a paused task's question. */
async function bringToEnd(client: AgentClient, taskId: string, key: string, signal: AbortSignal) {
  const task = await client.wait(taskId, { signal })
  if (isTerminal(task.status.state)) return
  await client.send({ text: `go ${key}`, taskId }, undefined, { signal })
  await client.wait(taskId, { signal })
}

async function eventsOf(client: AgentClient, taskId: string, signal: AbortSignal): Promise<WireEvent[]> {
  const events: WireEvent[] = []
  for await (const event of client.resubscribe(taskId, 0, { signal })) events.push(event)
  return events
}

/** Checks for numbers from 1 without gaps, unique ids, one final event at the end and no repeated `working`. */
function isSound(events: WireEvent[]): boolean {
  const numbered = events.every((event, i) => event.sequence === i + 1)
  const ids = new Set(events.map((event) => event.event_id)).size === events.length
  const finals = events.filter((event) => event.kind === 'status-update' && event.final)
  const states = events.flatMap((event) => (event.kind === 'status-update' ? [event.status.state] : []))
  const repeated = states.some((state, i) => state === 'working' && states[i - 1] === 'working')
  return numbered && ids && finals.length === 1 && finals[0] === events.at(-1) && !repeated
}

/**
 * Every first message has a unique text, so two tasks with the same text mean that a repeated message was duplicated.
 */
export async function countDoubled(client: AgentClient): Promise<number> {
  const counts = new Map<string, number>()
  let cursor: string | null = null
  do {
    const page = await client.request('tasks/list', { limit: 200, ...(cursor === null ? {} : { cursor }) })
    for (const task of page.result as { history: { parts: { text?: string }[] }[] }[]) {
      const text = task.history[0]?.parts[0]?.text ?? ''
      counts.set(text, (counts.get(text) ?? 0) + 1)
    }
    cursor = page.headers.get('x-next-cursor')
  } while (cursor !== null)
  return [...counts.values()].filter((count) => count > 1).length
}
