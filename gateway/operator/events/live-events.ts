import type { Log } from '@parley/kit/process/log'
import type { Registry } from '../../registry/registry.ts'
import type { Calls } from '../overview/overview.ts'
import type { ChangedAgents } from './changed-agents.ts'
import type { ChangedTasks } from './changed-tasks.ts'
import { EventRing, type LiveEvent } from './event-ring.ts'

export interface LiveEventsOptions {
  registry: Pick<Registry, 'all'>
  tasks: ChangedTasks
  agents: ChangedAgents
  /** Further sources of changes since the last call. `open` begins with the present. */
  sources: readonly ChangeSource[]
  calls: () => Calls
  log: Log
  /** Time between two rounds of reading. Default 1 s. */
  everyMs?: number
  /** Time for which reading continues without a stream, so that clients can connect again. Default 10 s. */
  lingerMs?: number
}

export interface ChangeSource {
  open(): void
  read(): Promise<LiveEvent[]>
}

/** A client that has missed changes reloads its lists at most this often. */
const resetEveryMs = 10_000

/** Reads the changes once per second for all streams of this gateway, and only while a stream is open. */
export class LiveEvents implements Disposable {
  readonly ring = new EventRing()
  readonly #options: LiveEventsOptions
  readonly #streams = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #isRunning = false
  #idleSince = 0
  #round = 0
  #resetAt = 0

  constructor(options: LiveEventsOptions) {
    this.#options = options
  }

  /** Calls `onEvents` after events were added to the ring, until the returned function is called. */
  subscribe(onEvents: () => void): () => void {
    this.#streams.add(onEvents)
    this.#start()
    return () => {
      this.#streams.delete(onEvents)
      if (this.#streams.size === 0) this.#idleSince = Date.now()
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#isRunning = false
    this.#streams.clear()
  }

  #start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    const { agents, registry, sources } = this.#options
    agents.open(registry.all())
    for (const source of sources) source.open()
    void this.#run()
  }

  async #run(): Promise<void> {
    const { everyMs = 1000, log } = this.#options
    const startedAt = Date.now()
    try {
      await this.#read()
    } catch (error) {
      log.warn({ err: error }, 'changes for open consoles could not be read')
    }
    if (!this.#isRunning) return
    if (this.#isIdle()) return this.#stop()
    for (const onEvents of this.#streams) onEvents()
    const waitMs = Math.max(100, startedAt + everyMs - Date.now())
    this.#timer = setTimeout(() => void this.#run(), waitMs).unref()
  }

  async #read(): Promise<void> {
    const { tasks, agents, sources, calls } = this.#options
    this.#round += 1
    const [changed, ...others] = await Promise.all([tasks.read(), ...sources.map((source) => source.read())])
    const standings = agents.take()
    for (const event of [...others.flat(), ...standings.events, ...changed.events]) this.ring.add(event)
    if (this.#round % 2 === 1) this.ring.add(agents.takeLoads(calls()))
    if (changed.isCut || standings.hasLeft) this.#reset(changed.isCut ? 'too_many_changes' : 'agent_left')
  }

  #reset(reason: string): void {
    if (Date.now() - this.#resetAt < resetEveryMs) return
    this.#resetAt = Date.now()
    this.ring.add({ type: 'reset', data: () => ({ reason }) })
  }

  #isIdle(): boolean {
    const { lingerMs = 10_000 } = this.#options
    return this.#streams.size === 0 && Date.now() - this.#idleSince >= lingerMs
  }

  #stop(): void {
    this.#isRunning = false
    this.#options.agents.close()
    this.#options.tasks.clear()
    this.ring.clear()
  }
}
