import { setTimeout as wait } from 'node:timers/promises'
import type { FailoverCluster, Packer } from './cluster.ts'
import type { Ledger } from './load.ts'
import type { Watch } from './watch.ts'

/** One kill and its consequences, in milliseconds after the kill, or undefined if they did not happen. */
export interface Kill {
  agent: Packer
  /** Time of the kill, in milliseconds since 1970. */
  at: number
  /** When the registry entry says that the agent is ejected. */
  ejectedMs?: number
  /** When the process is ready again. */
  readyMs?: number
  /** When the registry entry says that the agent is reinstated. */
  reinstatedMs?: number
  /** When the agent accepts a message that was sent after the process was ready again. */
  newWorkMs?: number
}

export interface KillsOptions {
  cluster: FailoverCluster
  watch: Watch
  ledger: Ledger
  random: () => number
  say: (text: string) => void
}

/** Time limit for a hanging run. Normally, five messages to a dead agent fail within a second. */
const ejectedWithinMs = 60_000
/** Limits of the downtime. The gateway retries for 10 s, so some agents are down for longer. */
const [downMinMs, downMaxMs] = [1000, 12_000]
const [calmMinMs, calmMaxMs] = [1000, 3000]
const lookMs = 50

/** Repeatedly kills (SIGKILL) the best agent, waits until it is ejected and restarts it some seconds later. */
export class Kills {
  readonly all: Kill[] = []
  readonly #options: KillsOptions

  constructor(options: KillsOptions) {
    this.#options = options
  }

  /** Resolves when the last killed agent is ready again. Kills at least one. */
  async run(stop: AbortSignal): Promise<void> {
    const { random, say } = this.#options
    do {
      await wait(between(calmMinMs, calmMaxMs, random()))
      const agent = await this.#winner(stop)
      if (agent === undefined) return
      const kill: Kill = { agent, at: Date.now() }
      this.all.push(kill)
      await this.#killed(kill, between(downMinMs, downMaxMs, random()))
      say(`${agent.slug} was killed: ejected after ${kill.ejectedMs} ms, ready after ${kill.readyMs} ms`)
    } while (!stop.aborted)
  }

  /** Killed agents that have not yet accepted new work. */
  get waiting(): Packer[] {
    return this.all.filter(({ newWorkMs }) => newWorkMs === undefined).map(({ agent }) => agent)
  }

  /** Updates the records of the kills. */
  look(): void {
    const { ledger, watch } = this.#options
    for (const kill of this.all) {
      const { agent, at, ejectedMs, readyMs } = kill
      if (ejectedMs !== undefined && watch.isEjected(agent.slug) === false)
        kill.reinstatedMs ??= Date.now() - at
      if (readyMs === undefined || kill.newWorkMs !== undefined) continue
      const taken = ledger.acknowledged.findLast((one) => one.agent === agent.slug)
      if (taken !== undefined && taken.sentAt >= at + readyMs) kill.newWorkMs = Date.now() - at
    }
  }

  async #killed(kill: Kill, downMs: number): Promise<void> {
    const { watch } = this.#options
    const { process, slug } = kill.agent
    const over = Promise.withResolvers<void>()
    void process.kill(over.promise)
    try {
      const until = kill.at + ejectedWithinMs
      while (watch.isEjected(slug) !== true && Date.now() < until) await wait(lookMs)
      if (watch.isEjected(slug) === true) kill.ejectedMs = Date.now() - kill.at
      await wait(downMs)
    } finally {
      over.resolve()
    }
    await process.ready()
    kill.readyMs = Date.now() - kill.at
  }

  /** The agent that accepted the last message that any agent could process, if another agent can replace it. */
  async #winner(stop: AbortSignal): Promise<Packer | undefined> {
    const { cluster, ledger } = this.#options
    for (;;) {
      const last = ledger.acknowledged.findLast(({ isForOne }) => !isForOne)
      const free = cluster.agents.filter((agent) => !this.waiting.includes(agent))
      const winner = free.find(({ slug }) => slug === last?.agent)
      if (winner !== undefined && free.length > 1) return winner
      if (stop.aborted && this.all.length > 0) return undefined
      await wait(lookMs)
    }
  }
}

const between = (min: number, max: number, share: number) => Math.round(min + share * (max - min))
