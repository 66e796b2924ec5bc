import { appendFileSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { AgentClient, type WireEvent } from '@parley/client/internal/client'
import { KillableAgent } from './killable-agent.ts'
import { hasMongodb, type MongodbServer, startMongodb } from './mongodb-server.ts'
import { hasRedis, type RedisServer, startRedis } from './redis-server.ts'

/** If false, suites with several processes are skipped. Their titles contain `(needs mongod, redis-server)`. */
export const hasServers = hasMongodb && hasRedis

/** MongoDB and Redis for one test file. */
export interface Servers extends AsyncDisposable {
  mongodb: MongodbServer
  redis: RedisServer
}

export async function startServers(): Promise<Servers> {
  await using stack = new AsyncDisposableStack()
  const mongodb = stack.use(await startMongodb())
  const redis = stack.use(await startRedis())
  const open = stack.move()
  return { mongodb, redis, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

/** A handler's note: `start`, `abort` or `end`, the text and the process id. */
export interface Note {
  what: string
  text: string
  pid: number
}

/**
 * The first word of the text selects what the handler does. The handler writes notes to a file, so that they survive a
 * kill, and outputs its process id.
 */
const source = (notes: string) => `
import { appendFileSync } from 'node:fs'
const note = (what, text) => appendFileSync(${JSON.stringify(notes)}, JSON.stringify({ what, text, pid: process.pid }) + '\\n')
const pause = (ms, signal) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => { clearTimeout(timer); resolve() })
})
export default {
  name: 'several processes', description: 'Works at different speeds',
  skills: [{ id: 'work', name: 'Work', description: 'Works' }], concurrency: 4,
  async *handle({ text, signal, ask, history }) {
    note('start', text)
    const kind = text.split(' ')[0]
    if (kind === 'slow') await pause(3000, signal)
    if (kind === 'soon') await pause(100 + Math.random() * 200, signal)
    if (kind === 'hang') await pause(60_000, signal)
    if (kind === 'ask' && history.length === 1) return yield ask('go on?')
    if (signal.aborted) return note('abort', text)
    note('end', text)
    yield String(process.pid)
  },
}
`

/** Several processes of one agent on MongoDB and Redis. */
export class AgentProcesses implements AsyncDisposable {
  readonly all: KillableAgent[]
  readonly #notes: string
  readonly #open: AsyncDisposableStack

  private constructor(all: KillableAgent[], notes: string, open: AsyncDisposableStack) {
    this.all = all
    this.#notes = notes
    this.#open = open
  }

  static async start(count: number, { mongodb, redis }: Servers, env: Record<string, string> = {}) {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(path.join(tmpdir(), 'parley-processes-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const notes = path.join(folder, 'notes')
    appendFileSync(notes, '')
    const urls = { STORE_URL: mongodb.newUrl(), REDIS_URL: redis.url }
    const first = stack.use(await KillableAgent.start(source(notes), { ...urls, ...env }))
    const all = [first]
    while (all.length < count) all.push(stack.use(await first.another()))
    return new AgentProcesses(all, notes, stack.move())
  }

  /** A client for each process. */
  callers(name: string): AgentClient[] {
    const token = this.all[0]?.identityProvider.issue(name) ?? ''
    return this.all.map(({ url }) => new AgentClient({ url, token, requestTimeoutMs: 15_000 }))
  }

  /** The notes for this text, oldest first. */
  notes(text?: string): Note[] {
    const lines = readFileSync(this.#notes, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
    return lines
      .map((line) => JSON.parse(line) as Note)
      .filter((note) => text === undefined || note.text === text)
  }

  of(pid: number | undefined): KillableAgent {
    const found = this.all.find((agent) => agent.pid === pid)
    if (found === undefined) throw new Error(`no process ${pid}`)
    return found
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#open.disposeAsync()
  }
}

/** All events of a task. */
export async function eventsOf(client: AgentClient, taskId: string): Promise<WireEvent[]> {
  const { events } = (await client.call('tasks/events', { id: taskId })) as { events: WireEvent[] }
  return events
}

/** Checks that events have numbers from 1 without gaps, unique ids, and one final event at the end. */
export function isSound(events: WireEvent[]): boolean {
  const numbered = events.every((event, i) => event.sequence === i + 1)
  const ids = new Set(events.map((event) => event.event_id)).size === events.length
  const finals = events.filter((event) => event.kind === 'status-update' && event.final)
  return numbered && ids && finals.length === 1 && finals[0] === events.at(-1)
}
