import type { Log } from '@parley/kit/process/log'
import type { AgentEntry, Load, Measurements } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'

export interface OutlierDetectorOptions {
  registry: Registry
  log: Log
  /** Half-life of a sample. Defaults to 30 minutes. */
  halfLifeMs?: number
  /** Number of consecutive failed requests after which an agent is ejected. Defaults to 5. */
  consecutiveFailuresMax?: number
  /** Duration of the first ejection. Each subsequent ejection lasts twice as long. Defaults to 15 s. */
  ejectionMs?: number
  /** Maximum duration of an ejection. Defaults to 10 minutes. */
  ejectionMaxMs?: number
  /** Interval at which measurements are written to the registry. Defaults to 1 s. */
  everyMs?: number
  now?: () => number
}

/** Statistics of one agent. */
interface AgentStats {
  successes: number
  failures: number
  /** Not decayed. See `Measurements`. */
  completedTasks: number
  /** Requests sent through the gateway that the agent answered. */
  requestsAnswered: number
  requestsFailed: number
  /** Time at which the four counters were last decayed. */
  at: number
  /** Number of tasks that heartbeats may still add, as of `budgetAt`. */
  heartbeatBudget: number
  budgetAt: number
  /** Latency samples, newest last. Holds at most `latencySamplesMax`. */
  latencies: { ms: number; at: number }[]
  consecutiveFailures: number
  /** True while the ejection is being written to the registry. */
  ejecting: boolean
  ejections: number
  /** Number of answered requests since the last failure. */
  responses: number
  /** Number of failures since the last answered request, and the entry's `since` at the first of those failures. */
  failingRequests: number
  failingSince: string
}

/** Number of consecutive answered requests after which the ejection count is reset. */
const responsesToReset = 20
const latencySamplesMax = 128
const completedTasksMax = 1_000_000
const noMeasurements: Measurements = { samples: 0, successShare: 1 }
/** Once an agent has this many samples, measured latencies replace self-reported ones. */
const latencySamplesMin = 5
/** Maximum number of tasks that heartbeats can add within `heartbeatWindowMs`. */
const heartbeatMax = 100
const heartbeatWindowMs = 10_000
/**
 * Once an agent has received this many requests, the fraction that it answered is an upper bound for its success rate,
 * so the agent cannot report a better one.
 */
const requestsMin = 5

/**
 * Measures how agents' tasks end and how long they take (spec/negotiation.md#measured-facts). Samples come from proxied
 * requests and heartbeats and decay exponentially. An agent that fails repeatedly is ejected temporarily and reinstated
 * after a successful probe. The first failure after that ejects it for twice as long.
 */
export class OutlierDetector implements Disposable {
  readonly #options: Required<Omit<OutlierDetectorOptions, 'registry' | 'log'>>
  readonly #registry: Registry
  readonly #log: Log
  readonly #stats = new Map<string, AgentStats>()
  readonly #changed = new Set<string>()
  /** Ids of agents that failed their last request. */
  readonly #failing = new Set<string>()
  readonly #timer: NodeJS.Timeout

  constructor({ registry, log, ...options }: OutlierDetectorOptions) {
    this.#registry = registry
    this.#log = log
    this.#options = {
      halfLifeMs: 30 * 60_000,
      consecutiveFailuresMax: 5,
      ejectionMs: 15_000,
      ejectionMaxMs: 10 * 60_000,
      everyMs: 1000,
      now: Date.now,
      ...options,
    }
    this.#timer = setInterval(() => this.publish(), this.#options.everyMs)
    this.#timer.unref()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.publish()
  }

  /** Records that the agent answered a request, whatever the status. */
  requestAnswered(id: string): void {
    const stats = this.#stats.get(id)
    if (stats === undefined) return
    if (stats.failingRequests > 0) {
      this.#discardOutage(id, stats)
      stats.failingRequests = 0
      this.#failing.delete(id)
    }
    stats.requestsAnswered += 1
    if (stats.consecutiveFailures === 0 && stats.ejections === 0) return
    stats.consecutiveFailures = 0
    stats.responses += 1
    if (stats.responses >= responsesToReset) stats.ejections = 0
  }

  /** Records that the agent was unreachable, broke the connection, timed out or failed with an internal error. */
  requestFailed(id: string): void {
    const stats = this.#statsOf(id)
    // A supervised process that is restarting is already excluded from routing.
    const entry = this.#registry.find(id)
    if (stats === undefined || entry === undefined || entry.status === 'starting') return
    this.#discardOutage(id, stats)
    if (stats.failingRequests === 0) stats.failingSince = entry.since
    stats.failingRequests += 1
    this.#failing.add(id)
    this.#count(id, stats, 0, 1)
    stats.requestsFailed += 1
    stats.consecutiveFailures += 1
    stats.responses = 0
    if (stats.consecutiveFailures < this.#options.consecutiveFailuresMax || stats.ejecting) return
    // An ejected agent still receives requests for existing tasks. Only a probe decides whether to reinstate it.
    if (entry.quarantine === undefined) this.#eject(id, stats)
  }

  /**
   * Records that one of the agent's tasks ended. Agents that send heartbeats count their tasks themselves.
   * @param caller owner of the task; tasks completed for the agent's own client are not counted
   */
  taskEnded(id: string, outcome: 'completed' | 'failed', latencyMs?: number, caller?: string): void {
    const stats = this.#statsOf(id)
    if (stats === undefined) return
    if (outcome === 'completed' && caller !== undefined && caller !== this.#registry.find(id)?.owner) {
      stats.completedTasks = Math.min(completedTasksMax, stats.completedTasks + 1)
      this.#changed.add(id)
    }
    if (latencyMs !== undefined && latencyMs >= 0) {
      stats.latencies.push({ ms: latencyMs, at: this.#options.now() })
      if (stats.latencies.length > latencySamplesMax) stats.latencies.shift()
      this.#changed.add(id)
    }
    if (this.#registry.find(id)?.sendsHeartbeats === true) return
    if (outcome === 'completed') this.#count(id, stats, 1, 0)
    else this.#count(id, stats, 0, 1)
  }

  /** Adds the difference between two heartbeats. */
  heartbeat(id: string, before: Load, now: Load): void {
    const stats = this.#statsOf(id)
    if (stats === undefined) return
    const successes = growth(before.completed, now.completed)
    const failures = growth(before.failed, now.failed)
    const elapsedMs = this.#options.now() - stats.budgetAt
    stats.budgetAt += elapsedMs
    stats.heartbeatBudget = Math.min(
      heartbeatMax,
      stats.heartbeatBudget + (heartbeatMax * elapsedMs) / heartbeatWindowMs,
    )
    const share = Math.min(1, stats.heartbeatBudget / Math.max(1, successes + failures))
    stats.heartbeatBudget -= (successes + failures) * share
    this.#count(id, stats, successes * share, failures * share)
  }

  /** Handles the result of a probe of an ejected agent. */
  async probed(id: string, responses: boolean): Promise<void> {
    const stats = this.#statsOf(id)
    if (stats === undefined) return
    if (!responses) return this.#eject(id, stats)
    stats.consecutiveFailures = this.#options.consecutiveFailuresMax - 1
    const slug = this.#registry.find(id)?.slug
    if (await this.#registry.reinstate(id)) this.#log.info({ agent: slug }, 'agent is reinstated')
  }

  /** Writes the measurements to the registry. Called by the timer. */
  publish(): void {
    for (const id of this.#failing) {
      const stats = this.#stats.get(id)
      if (stats !== undefined) this.#discardOutage(id, stats)
    }
    for (const id of this.#changed) {
      const stats = this.#stats.get(id)
      const entry = this.#registry.find(id)
      if (entry === undefined || stats === undefined) {
        this.#stats.delete(id)
        this.#failing.delete(id)
      } else this.#registry.setMeasurements(id, this.#measurements(stats, entry))
    }
    this.#changed.clear()
  }

  /**
   * Discards the failures of a supervised process that has ended, because they say nothing about its successor. The
   * failures of external agents are kept, because such an agent could restart to improve its measurements.
   */
  #discardOutage(id: string, stats: AgentStats): void {
    const entry = this.#registry.find(id)
    if (stats.failingRequests === 0 || entry?.origin !== 'supervised' || entry.since === stats.failingSince)
      return
    stats.failures = Math.max(0, stats.failures - stats.failingRequests)
    stats.requestsFailed = Math.max(0, stats.requestsFailed - stats.failingRequests)
    stats.failingRequests = 0
    this.#failing.delete(id)
    this.#changed.add(id)
  }

  #measurements(stats: AgentStats, { load }: AgentEntry): Measurements {
    this.#decay(stats)
    const samples = stats.successes + stats.failures
    const p50 = this.#percentile(stats, 0.5) ?? load.latencyP50Ms
    const p95 = this.#percentile(stats, 0.95) ?? load.latencyP95Ms
    return {
      samples: round(samples),
      completedTasks: stats.completedTasks,
      successShare: round(Math.min(samples === 0 ? 1 : stats.successes / samples, answeredFraction(stats))),
      ...(p50 !== undefined && { latencyP50Ms: p50 }),
      ...(p95 !== undefined && { latencyP95Ms: p95 }),
    }
  }

  #percentile({ latencies }: AgentStats, share: number): number | undefined {
    const oldest = this.#options.now() - 4 * this.#options.halfLifeMs
    const sorted = latencies
      .filter(({ at }) => at >= oldest)
      .map(({ ms }) => ms)
      .sort((a, b) => a - b)
    if (sorted.length < latencySamplesMin) return undefined
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  }

  #count(id: string, stats: AgentStats, successes: number, failures: number): void {
    if (successes + failures > 0) {
      this.#decay(stats)
      stats.successes += successes
      stats.failures += failures
    }
    this.#changed.add(id)
  }

  #decay(stats: AgentStats): void {
    const now = this.#options.now()
    const factor = 0.5 ** ((now - stats.at) / this.#options.halfLifeMs)
    for (const tally of ['successes', 'failures', 'requestsAnswered', 'requestsFailed'] as const)
      stats[tally] *= factor
    stats.at = now
  }

  #eject(id: string, stats: AgentStats): void {
    const { now, ejectionMs, ejectionMaxMs } = this.#options
    const durationMs = Math.min(ejectionMaxMs, ejectionMs * 2 ** Math.min(stats.ejections, 20))
    stats.ejections += 1
    stats.consecutiveFailures = 0
    stats.ejecting = true
    const slug = this.#registry.find(id)?.slug
    const eject = async () => {
      if (!(await this.#registry.eject(id, 'repeated failures', now() + durationMs))) return
      this.#log.warn({ agent: slug, lasts_ms: durationMs }, 'agent is ejected after repeated failures')
    }
    eject()
      .catch((error: unknown) => {
        this.#log.error({ err: error, agent: slug }, 'agent could not be ejected')
      })
      .finally(() => {
        stats.ejecting = false
      })
  }

  #statsOf(id: string): AgentStats | undefined {
    const known = this.#stats.get(id)
    if (known !== undefined) return known
    const entry = this.#registry.find(id)
    if (entry === undefined) return undefined
    const { samples, successShare, completedTasks = 0 } = entry.measurements ?? noMeasurements
    const stats: AgentStats = {
      successes: samples * successShare,
      failures: samples * (1 - successShare),
      completedTasks,
      requestsAnswered: 0,
      requestsFailed: 0,
      at: this.#options.now(),
      heartbeatBudget: heartbeatMax,
      budgetAt: this.#options.now(),
      latencies: [],
      consecutiveFailures: 0,
      ejecting: false,
      responses: 0,
      failingRequests: 0,
      failingSince: '',
      ejections: entry.quarantine?.until === undefined ? 0 : 1,
    }
    this.#stats.set(id, stats)
    return stats
  }
}

function answeredFraction({ requestsAnswered, requestsFailed }: AgentStats): number {
  const requests = requestsAnswered + requestsFailed
  return requests < requestsMin ? 1 : requestsAnswered / requests
}

/** Returns the growth of a counter. A counter that is lower than before has been reset. */
function growth(before = 0, now = 0): number {
  return now >= before ? now - before : now
}

const round = (value: number) => Math.round(value * 10_000) / 10_000
