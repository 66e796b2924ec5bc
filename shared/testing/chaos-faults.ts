import { setTimeout as wait } from 'node:timers/promises'
import type { AgentProcesses, Servers } from './agent-processes.ts'
import type { Fault } from './chaos-plan.ts'

const [databaseMs, redisMs, frozenMs, downMs] = [5000, 500, 15_000, 500]
/** A process may find no database at its start, as often as it is away. */
const startsMax = 20

/** Makes faults happen, and knows which of them are not over yet. */
export class Faults {
  readonly #agents: AgentProcesses
  readonly #servers: Servers
  readonly #frozen = new Map<number, Promise<void>>()

  constructor(agents: AgentProcesses, servers: Servers) {
    this.#agents = agents
    this.#servers = servers
  }

  /** How often `/health` did not name what was away. */
  unsaid = 0

  /** Resolves when it is over; a frozen process is woken later, while others come. False: it is so already. */
  async make({ kind, victim }: Fault): Promise<boolean> {
    const { mongodb, redis } = this.#servers
    if (kind === 'freeze' && this.#frozen.has(victim)) return false
    if (kind === 'redis') {
      await redis.kill()
      await this.#look('scheduler', redisMs)
      await redis.restart()
    } else if (kind === 'database') {
      await mongodb.kill()
      await this.#look('storage', databaseMs)
      await mongodb.restart()
    } else if (kind === 'kill') await this.#kill(victim)
    else this.#frozen.set(victim, this.#freeze(victim))
    return true
  }

  /** Resolves when nothing is frozen any more. */
  async over(): Promise<void> {
    await Promise.all(this.#frozen.values())
  }

  /** What is away for so long is named by the health of each process that runs. */
  async #look(check: 'scheduler' | 'storage', forMs: number): Promise<void> {
    const over = wait(forMs)
    const awake = this.#agents.all.filter((_, i) => !this.#frozen.has(i))
    const answers = await Promise.all(awake.map(({ url }) => fetch(`${url}/health`).catch(() => undefined)))
    for (const answer of answers) {
      const { checks } = ((await answer?.json()) ?? {}) as { checks?: Record<string, string> }
      if (answer?.status !== 503 || !checks?.[check]?.startsWith('error:')) this.unsaid += 1
    }
    await over
  }

  async #kill(victim: number): Promise<void> {
    const agent = this.#agents.all[victim]
    await agent?.kill()
    await wait(downMs)
    for (let start = 1; ; start += 1) {
      try {
        return await agent?.start()
      } catch (error) {
        if (start === startsMax) throw error
        await wait(downMs)
      }
    }
  }

  async #freeze(victim: number): Promise<void> {
    const agent = this.#agents.all[victim]
    agent?.freeze()
    await wait(frozenMs)
    agent?.thaw()
    this.#frozen.delete(victim)
  }
}
