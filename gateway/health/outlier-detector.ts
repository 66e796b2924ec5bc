import type { Log } from '@parley/kit/process/log'
import type { AgentEntry, Load, Measurements } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'

export interface WorkSeenOptions {
  registry: Registry
  log: Log
  /** After so long a sample counts half. Default 30 minutes. */
  halfLifeMs?: number
  /** Requests in a row that an agent fails before it is set aside. Default 5. */
  failuresInARow?: number
  /** How long the first time aside lasts; each further one twice as long. Default 15 s. */
  asideMs?: number
  /** Default 10 minutes. */
  asideMaxMs?: number
  /** How often figures go to the registry. Default 1 s. */
  everyMs?: number
  now?: () => number
}

/** What is kept of one agent. */
interface Work {
  good: number
  bad: number
  /** As in `Measurements`. */
  completedTasks: number
  /** Requests that passed the gateway, by whether it answered them. */
  answered: number
  unanswered: number
  /** When the four were last made less. */
  at: number
  /** What heartbeats may still add, as of `toldAt`. */
  toldRoom: number
  toldAt: number
  /** Newest last, at most `latenciesMax`. */
  latencies: { ms: number; at: number }[]
  inARow: number
  /** It is being set aside: the entry does not say so yet. */
  goesAside: boolean
  timesAside: number
  /** Since it failed last. */
  answers: number
  /** Failures since its last answer, and the `since` of its entry at the first of them. */
  streak: number
  streakSince: string
}

/** So many answers in a row, and earlier times aside are forgotten. */
const answersToForgive = 20
const latenciesMax = 128
const completedTasksMax = 1_000_000
const nothingMeasured: Measurements = { samples: 0, successShare: 1 }
/** Own measurements of the time a task takes count from so many on; before, those that the agent tells. */
const latenciesMin = 5
/** What heartbeats may add within `toldMaxMs`, however many there are. */
const toldMax = 100
const toldMaxMs = 10_000
/** From so many requests on, the share that was answered bounds the share of success: no agent's own word goes beyond it. */
const requestsMin = 5

/**
 * The facts of the agents (spec/negotiation.md#measured-facts): how their tasks end and how long they take, from what passes the
 * gateway and what heartbeats tell, decayed in time. Who fails again and again is set aside for a time, and comes back by a
 * probe; the first failure after that sets it aside for longer.
 */
export class WorkSeen implements Disposable {
  readonly #options: Required<Omit<WorkSeenOptions, 'registry' | 'log'>>
  readonly #registry: Registry
  readonly #log: Log
  readonly #works = new Map<string, Work>()
  readonly #changed = new Set<string>()
  /** Agents whose last requests failed. */
  readonly #failing = new Set<string>()
  readonly #timer: NodeJS.Timeout

  constructor({ registry, log, ...options }: WorkSeenOptions) {
    this.#registry = registry
    this.#log = log
    this.#options = {
      halfLifeMs: 30 * 60_000,
      failuresInARow: 5,
      asideMs: 15_000,
      asideMaxMs: 10 * 60_000,
      everyMs: 1000,
      now: Date.now,
      ...options,
    }
    this.#timer = setInterval(() => this.tell(), this.#options.everyMs)
    this.#timer.unref()
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
    this.tell()
  }

  /** It answered a request, whatever the answer. */
  answered(id: string): void {
    const work = this.#works.get(id)
    if (work === undefined) return
    if (work.streak > 0) {
      this.#forgetOutage(id, work)
      work.streak = 0
      this.#failing.delete(id)
    }
    work.answered += 1
    if (work.inARow === 0 && work.timesAside === 0) return
    work.inARow = 0
    work.answers += 1
    if (work.answers >= answersToForgive) work.timesAside = 0
  }

  /** It could not be reached, broke off, was silent, or failed by a fault of its own. */
  failed(id: string): void {
    const work = this.#workOf(id)
    // A supervised process that is being started again is excluded already, and known to be coming back.
    const entry = this.#registry.find(id)
    if (work === undefined || entry === undefined || entry.status === 'starting') return
    this.#forgetOutage(id, work)
    if (work.streak === 0) work.streakSince = entry.since
    work.streak += 1
    this.#failing.add(id)
    this.#count(id, work, 0, 1)
    work.unanswered += 1
    work.inARow += 1
    work.answers = 0
    if (work.inARow < this.#options.failuresInARow || work.goesAside) return
    // Whoever is aside fails those who still come for their tasks, too: whether it is there again the probe finds out.
    if (entry.quarantine === undefined) this.#setAside(id, work)
  }

  /**
   * A task of it came to its end. Agents that send heartbeats count their tasks themselves.
   * @param caller who owned the task: completed tasks of the agent's own client are no evidence
   */
  ended(id: string, outcome: 'completed' | 'failed', latencyMs?: number, caller?: string): void {
    const work = this.#workOf(id)
    if (work === undefined) return
    if (outcome === 'completed' && caller !== undefined && caller !== this.#registry.find(id)?.owner) {
      work.completedTasks = Math.min(completedTasksMax, work.completedTasks + 1)
      this.#changed.add(id)
    }
    if (latencyMs !== undefined && latencyMs >= 0) {
      work.latencies.push({ ms: latencyMs, at: this.#options.now() })
      if (work.latencies.length > latenciesMax) work.latencies.shift()
      this.#changed.add(id)
    }
    if (this.#registry.find(id)?.sendsHeartbeats === true) return
    if (outcome === 'completed') this.#count(id, work, 1, 0)
    else this.#count(id, work, 0, 1)
  }

  /** What a heartbeat says, beside the one before it. */
  told(id: string, before: Load, now: Load): void {
    const work = this.#workOf(id)
    if (work === undefined) return
    const good = growth(before.completed, now.completed)
    const bad = growth(before.failed, now.failed)
    const passed = this.#options.now() - work.toldAt
    work.toldAt += passed
    work.toldRoom = Math.min(toldMax, work.toldRoom + (toldMax * passed) / toldMaxMs)
    const share = Math.min(1, work.toldRoom / Math.max(1, good + bad))
    work.toldRoom -= (good + bad) * share
    this.#count(id, work, good * share, bad * share)
  }

  /** An agent that was set aside was asked whether it is there. */
  async probed(id: string, answers: boolean): Promise<void> {
    const work = this.#workOf(id)
    if (work === undefined) return
    if (!answers) return this.#setAside(id, work)
    work.inARow = this.#options.failuresInARow - 1
    const slug = this.#registry.find(id)?.slug
    if (await this.#registry.takeBack(id)) this.#log.info({ agent: slug }, 'agent is back from quarantine')
  }

  /** Hands the figures to the registry; the timer calls it. */
  tell(): void {
    for (const id of this.#failing) {
      const work = this.#works.get(id)
      if (work !== undefined) this.#forgetOutage(id, work)
    }
    for (const id of this.#changed) {
      const work = this.#works.get(id)
      const entry = this.#registry.find(id)
      if (entry === undefined || work === undefined) {
        this.#works.delete(id)
        this.#failing.delete(id)
      } else this.#registry.measured(id, this.#figures(work, entry))
    }
    this.#changed.clear()
  }

  /**
   * The last failures of a supervised process that has ended since say nothing about how well the agent works. An external
   * agent gets no such pardon: it could end its process to improve its figures.
   */
  #forgetOutage(id: string, work: Work): void {
    const entry = this.#registry.find(id)
    if (work.streak === 0 || entry?.origin !== 'supervised' || entry.since === work.streakSince) return
    work.bad = Math.max(0, work.bad - work.streak)
    work.unanswered = Math.max(0, work.unanswered - work.streak)
    work.streak = 0
    this.#failing.delete(id)
    this.#changed.add(id)
  }

  #figures(work: Work, { load }: AgentEntry): Measurements {
    this.#decay(work)
    const samples = work.good + work.bad
    const p50 = this.#percentile(work, 0.5) ?? load.latencyP50Ms
    const p95 = this.#percentile(work, 0.95) ?? load.latencyP95Ms
    return {
      samples: round(samples),
      completedTasks: work.completedTasks,
      successShare: round(Math.min(samples === 0 ? 1 : work.good / samples, answeredShare(work))),
      ...(p50 !== undefined && { latencyP50Ms: p50 }),
      ...(p95 !== undefined && { latencyP95Ms: p95 }),
    }
  }

  #percentile({ latencies }: Work, share: number): number | undefined {
    const oldest = this.#options.now() - 4 * this.#options.halfLifeMs
    const sorted = latencies
      .filter(({ at }) => at >= oldest)
      .map(({ ms }) => ms)
      .sort((a, b) => a - b)
    if (sorted.length < latenciesMin) return undefined
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
  }

  #count(id: string, work: Work, good: number, bad: number): void {
    if (good + bad > 0) {
      this.#decay(work)
      work.good += good
      work.bad += bad
    }
    this.#changed.add(id)
  }

  #decay(work: Work): void {
    const now = this.#options.now()
    const factor = 0.5 ** ((now - work.at) / this.#options.halfLifeMs)
    for (const tally of ['good', 'bad', 'answered', 'unanswered'] as const) work[tally] *= factor
    work.at = now
  }

  #setAside(id: string, work: Work): void {
    const { now, asideMs, asideMaxMs } = this.#options
    const lastsMs = Math.min(asideMaxMs, asideMs * 2 ** Math.min(work.timesAside, 20))
    work.timesAside += 1
    work.inARow = 0
    work.goesAside = true
    const slug = this.#registry.find(id)?.slug
    const aside = async () => {
      if (!(await this.#registry.setAside(id, 'it failed again and again', now() + lastsMs))) return
      this.#log.warn({ agent: slug, lasts_ms: lastsMs }, 'agent is set aside: it failed again and again')
    }
    aside()
      .catch((error: unknown) => {
        this.#log.error({ err: error, agent: slug }, 'agent could not be set aside')
      })
      .finally(() => {
        work.goesAside = false
      })
  }

  #workOf(id: string): Work | undefined {
    const known = this.#works.get(id)
    if (known !== undefined) return known
    const entry = this.#registry.find(id)
    if (entry === undefined) return undefined
    const { samples, successShare, completedTasks = 0 } = entry.measurements ?? nothingMeasured
    const work: Work = {
      good: samples * successShare,
      bad: samples * (1 - successShare),
      completedTasks,
      answered: 0,
      unanswered: 0,
      at: this.#options.now(),
      toldRoom: toldMax,
      toldAt: this.#options.now(),
      latencies: [],
      inARow: 0,
      goesAside: false,
      answers: 0,
      streak: 0,
      streakSince: '',
      timesAside: entry.quarantine?.until === undefined ? 0 : 1,
    }
    this.#works.set(id, work)
    return work
  }
}

function answeredShare({ answered, unanswered }: Work): number {
  const requests = answered + unanswered
  return requests < requestsMin ? 1 : answered / requests
}

/** A counter that is lower than before began anew. */
function growth(before = 0, now = 0): number {
  return now >= before ? now - before : now
}

const round = (value: number) => Math.round(value * 10_000) / 10_000
