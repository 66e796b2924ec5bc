import { setTimeout as wait } from 'node:timers/promises'
import type { FailoverCluster, Packer } from './cluster.ts'
import type { Ledger } from './load.ts'
import type { Watch } from './watch.ts'

/** One kill, with what came of it; milliseconds since the kill, undefined: it did not come to it. */
export interface Kill {
  agent: Packer
  /** In milliseconds since 1970. */
  at: number
  /** Its entry says that it is set aside. */
  asideMs?: number
  /** The process is there again. */
  readyMs?: number
  /** Its entry says that it is not set aside any more. */
  backMs?: number
  /** It has taken a message that was sent after it was there again. */
  workMs?: number
}

export interface KillsOptions {
  cluster: FailoverCluster
  watch: Watch
  ledger: Ledger
  random: () => number
  say: (text: string) => void
}

/** A bound against hanging: an agent that is dead fails five messages of the load within a second. */
const asideWithinMs = 60_000
/** The gateway asks again for 10 s: some are down for longer. */
const [downMinMs, downMaxMs] = [1000, 12_000]
const [calmMinMs, calmMaxMs] = [1000, 3000]
const lookMs = 50

/** Kills (SIGKILL) the agent that wins, waits until it is set aside, has it started again some seconds later; and so on. */
export class Kills {
  readonly all: Kill[] = []
  readonly #options: KillsOptions

  constructor(options: KillsOptions) {
    this.#options = options
  }

  /** Resolves when the last one that was killed is there again. At least one is. */
  async run(stop: AbortSignal): Promise<void> {
    const { random, say } = this.#options
    do {
      await wait(between(calmMinMs, calmMaxMs, random()))
      const agent = await this.#winner(stop)
      if (agent === undefined) return
      const kill: Kill = { agent, at: Date.now() }
      this.all.push(kill)
      await this.#killed(kill, between(downMinMs, downMaxMs, random()))
      say(
        `${agent.slug} was killed; set aside after ${kill.asideMs} ms, started again, there after ${kill.readyMs} ms`,
      )
    } while (!stop.aborted)
  }

  /** Those that were killed and have not got work again. */
  get waiting(): Packer[] {
    return this.all.filter(({ workMs }) => workMs === undefined).map(({ agent }) => agent)
  }

  /** Looks what has come of the kills. */
  look(): void {
    const { ledger, watch } = this.#options
    for (const kill of this.all) {
      const { agent, at, asideMs, readyMs } = kill
      if (asideMs !== undefined && watch.isAside(agent.slug) === false) kill.backMs ??= Date.now() - at
      if (readyMs === undefined || kill.workMs !== undefined) continue
      const taken = ledger.told.findLast((one) => one.agent === agent.slug)
      if (taken !== undefined && taken.sentAt >= at + readyMs) kill.workMs = Date.now() - at
    }
  }

  async #killed(kill: Kill, downMs: number): Promise<void> {
    const { watch } = this.#options
    const { process, slug } = kill.agent
    const over = Promise.withResolvers<void>()
    void process.kill(over.promise)
    try {
      const until = kill.at + asideWithinMs
      while (watch.isAside(slug) !== true && Date.now() < until) await wait(lookMs)
      if (watch.isAside(slug) === true) kill.asideMs = Date.now() - kill.at
      await wait(downMs)
    } finally {
      over.resolve()
    }
    await process.ready()
    kill.readyMs = Date.now() - kill.at
  }

  /** The agent that took the last message that any could do, while another one could take its place. */
  async #winner(stop: AbortSignal): Promise<Packer | undefined> {
    const { cluster, ledger } = this.#options
    for (;;) {
      const last = ledger.told.findLast(({ isForOne }) => !isForOne)
      const free = cluster.agents.filter((agent) => !this.waiting.includes(agent))
      const winner = free.find(({ slug }) => slug === last?.agent)
      if (winner !== undefined && free.length > 1) return winner
      if (stop.aborted && this.all.length > 0) return undefined
      await wait(lookMs)
    }
  }
}

const between = (min: number, max: number, share: number) => Math.round(min + share * (max - min))
