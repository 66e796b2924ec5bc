import type { AgentApp } from '@parley/agent/internal/server/app'
import type { RelayedAgent, RelayedAgentMessage } from '@parley/kit/auth/relayed-agent'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import { isTerminal, taskStates } from '@parley/wire/model/task'
import { type HostParts, type OpenedApp, openApp } from './open-app.ts'
import { ClosedAppRetention } from './retention.ts'

/** How long an app without requests, open tasks and undelivered webhook events stays open, and how often that is checked. */
const [idleMs, checkEveryMs] = [600_000, 30_000]
/** How often the mark of an open app is repeated. */
const markEveryMs = 60_000
/** How often expired links are removed, and how many in a batch. */
const [removeEveryMs, removedAtOnce] = [3_600_000, 500]
/** How long a request waits for an agent whose registration has not reached the relay yet. */
const unknownWaitMs = 5000

interface OpenApp {
  app: OpenedApp
  /** The number of requests in progress. */
  requests: number
  /** By `Date.now()`. */
  usedAt: number
  /** When the app was last marked as open, by `Date.now()`. */
  markedAt: number
}

/**
 * The foreign agents of a gateway. Each has a separate app, which is opened by the first request, or at the start if it
 * has open tasks, and closed when it is idle. Thousands of registered agents thus cost only their descriptions.
 */
export class RelayedAgents implements AsyncDisposable {
  readonly #parts: HostParts
  readonly #idleMs: number
  readonly #agents = new Map<string, RelayedAgent>()
  readonly #open = new Map<string, OpenApp>()
  readonly #changes = new KeyedMutex()
  /** The agents whose apps were open when the last process ended. */
  readonly #reopen: Promise<Set<string>>
  readonly #waiting = new Map<string, Set<() => void>>()
  readonly #timer: NodeJS.Timeout
  readonly #retention: ClosedAppRetention
  #removedAt = Number.NEGATIVE_INFINITY
  #isDisposed = false

  constructor(
    parts: HostParts,
    timing: { idleMs?: number; checkEveryMs?: number; retentionEveryMs?: number } = {},
  ) {
    this.#parts = parts
    this.#idleMs = timing.idleMs ?? idleMs
    this.#reopen = parts.links.openAgents().then((slugs) => new Set(slugs))
    this.#reopen.catch(() => {})
    this.#timer = setInterval(() => void this.#check(), timing.checkEveryMs ?? checkEveryMs).unref()
    this.#retention = new ClosedAppRetention({
      ...parts,
      named: () => new Set([...this.#agents.values()].map(({ id }) => id)),
      ...(timing.retentionEveryMs !== undefined && { everyMs: timing.retentionEveryMs }),
    })
  }

  /** The number of open apps. */
  get openCount(): number {
    return this.#open.size
  }

  /** Adds, replaces or removes an agent. A replaced agent's app is opened again with the new settings. */
  async change({ slug, agent }: RelayedAgentMessage): Promise<void> {
    const before = this.#agents.get(slug)
    if (agent === undefined) this.#agents.delete(slug)
    else this.#agents.set(slug, agent)
    const wasOpen = this.#open.has(slug) || (await this.#reopen).delete(slug)
    const isChanged = JSON.stringify(before) !== JSON.stringify(agent)
    // Calls of tools continue if only the list of tools changes.
    const isUpdated = agent !== undefined && isChanged && this.#open.get(slug)?.app.update(agent) === true
    if (this.#open.has(slug) && isChanged && !isUpdated) await this.#close(slug)
    if (agent === undefined) await this.#parts.links.unmarkOpen(slug)
    else if (wasOpen) await this.#opened(slug)
    for (const wake of this.#waiting.get(slug) ?? []) wake()
  }

  /** Runs a request at the agent's app. Resolves with false for an unknown agent. */
  async use(slug: string, request: (app: AgentApp) => Promise<void>): Promise<boolean> {
    if (!this.#agents.has(slug)) await this.#appearance(slug)
    const open = await this.#opened(slug)
    if (open === undefined) return false
    open.requests += 1
    try {
      await request(open.app)
    } finally {
      open.requests -= 1
      open.usedAt = Date.now()
    }
    return true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true
    clearInterval(this.#timer)
    await this.#retention[Symbol.asyncDispose]()
    // The marks remain, so that open tasks continue after the next start.
    await Promise.all([...this.#open.keys()].map((slug) => this.#close(slug)))
  }

  #opened(slug: string): Promise<OpenApp | undefined> {
    const open = this.#open.get(slug)
    if (open !== undefined) return Promise.resolve(open)
    return this.#changes.run([slug], async () => {
      const known = this.#open.get(slug)
      const agent = this.#agents.get(slug)
      if (known !== undefined || agent === undefined || this.#isDisposed) return known
      const markedAt = Date.now()
      await this.#parts.links.markOpen(slug)
      const app = await this.#retention.open(agent.id, () => openApp(slug, agent, this.#parts))
      const opened = { app, requests: 0, usedAt: Date.now(), markedAt }
      this.#open.set(slug, opened)
      return opened
    })
  }

  /** @param closed runs before the app can be opened again */
  #close(slug: string, closed?: () => Promise<void>): Promise<void> {
    return this.#changes.run([slug], async () => {
      const open = this.#open.get(slug)
      this.#open.delete(slug)
      await open?.app[Symbol.asyncDispose]()
      await closed?.()
    })
  }

  async #check(): Promise<void> {
    for (const [slug, open] of this.#open) await this.#try(slug, () => this.#closeOrMark(slug, open))
    await this.#try(undefined, () => this.#adopt())
    await this.#try(undefined, () => this.#removeExpired())
  }

  async #removeExpired(): Promise<void> {
    if (performance.now() - this.#removedAt < removeEveryMs) return
    this.#removedAt = performance.now()
    let removed = removedAtOnce
    while (removed === removedAtOnce && !this.#isDisposed)
      removed = await this.#parts.links.removeExpired(removedAtOnce)
  }

  async #try(agent: string | undefined, check: () => Promise<void>): Promise<void> {
    try {
      await check()
    } catch (error) {
      this.#parts.log.warn({ err: error, agent }, 'a check of the open apps failed')
    }
  }

  /** Closes the app if it is idle, otherwise repeats its mark. */
  async #closeOrMark(slug: string, open: OpenApp): Promise<void> {
    const { links } = this.#parts
    const isUsed = () => open.requests > 0 || Date.now() - open.usedAt < this.#idleMs
    if (isUsed() || open.app.hasPendingWebhooks() || (await hasOpenTasks(open.app))) {
      if (Date.now() - open.markedAt < markEveryMs) return
      open.markedAt = Date.now()
      await links.markOpen(slug)
      return
    }
    // A request may have arrived during the check.
    if (isUsed() || this.#open.get(slug) !== open) return
    await this.#close(slug, () => links.unmarkOpen(slug))
  }

  /** Opens the apps of relays on other machines that no longer run, because they may have left open tasks. */
  async #adopt(): Promise<void> {
    for (const slug of await this.#parts.links.abandonedAgents())
      if (this.#agents.has(slug)) await this.#opened(slug)
  }

  /** Waits for the description of an agent, for a limited time. */
  async #appearance(slug: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = this.#waiting.get(slug) ?? new Set()
    this.#waiting.set(slug, waiting.add(resolve))
    const timer = setTimeout(resolve, unknownWaitMs)
    await promise
    clearTimeout(timer)
    waiting.delete(resolve)
    if (waiting.size === 0) this.#waiting.delete(slug)
  }
}

async function hasOpenTasks({ services }: AgentApp): Promise<boolean> {
  const counts = await services.store.countByState()
  return taskStates.some((state) => !isTerminal(state) && (counts[state] ?? 0) > 0)
}
