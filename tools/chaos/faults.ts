import { setTimeout as wait } from 'node:timers/promises'
import { healthOf, type ParleyProcess } from '@parley/e2e/harness/parley-process'
import type { Client } from './clients.ts'
import type { ChaosCluster } from './cluster.ts'
import { type Fault, type FaultKind, pick } from './plan.ts'

const [databaseMs, redisMs, frozenMs, clockMs] = [5000, 500, 15_000, 4000]
/** Time limit, generous for a slow machine. A state that is not reached in time is a finding. */
const patienceMs = 120_000
const day = 24 * 60 * 60

/** Injects faults and keeps track of those that have not ended. */
export class Faults {
  readonly #cluster: ChaosCluster
  readonly #clients: Client[]
  readonly #later = new Set<Promise<void>>()

  constructor(cluster: ChaosCluster, clients: Client[]) {
    this.#cluster = cluster
    this.#clients = clients.filter(({ role }) => role === 'signs' || role === 'pays')
  }

  readonly made: Partial<Record<FaultKind, number>> = {}
  /** Processes that did not report an outage in `/health`. */
  unreportedOutages: string[] = []

  /** Returns the name of the affected process. Outages are over by the time it resolves; `over` waits for other faults. */
  async make({ kind, victim }: Fault): Promise<string> {
    if (kind === 'clock') return this.#begin(kind, this.#wrongClock(pick(this.#clients, victim), victim))
    const hit = kind === 'redis' || kind === 'database' ? undefined : await this.#processFor(kind, victim)
    if (kind === 'freeze' && hit !== undefined) return this.#begin(kind, freeze(hit), hit.name)
    if (kind === 'redis') await this.#redis()
    else if (kind === 'database') await this.#database()
    else void hit?.kill()
    this.#count(kind)
    return hit?.name ?? ''
  }

  /** Chooses a process but leaves one of each kind running, because clients need one to detect faults. */
  async #processFor(kind: FaultKind, chance: number): Promise<ParleyProcess> {
    const { agents, gateways } = this.#cluster.cluster
    const roles = kind === 'kill agent' ? [agents] : kind === 'kill gateway' ? [gateways] : [agents, gateways]
    for (const until = Date.now() + patienceMs; Date.now() < until; await wait(100)) {
      const up = roles.map((role) => role.filter(({ state }) => state === 'ready'))
      const able = up.filter(({ length }) => length > 1).flat()
      if (able.length > 0) return pick(able, chance)
    }
    throw new Error(`${kind}: processes do not come back`)
  }

  /** Resolves when all faults have ended and every process is ready. @throws Error if a process does not recover */
  async over(): Promise<void> {
    while (this.#later.size > 0) await Promise.all(this.#later)
    const { agents, gateways } = this.#cluster.cluster
    await Promise.all([...agents, ...gateways].map((one) => one.ready()))
  }

  #begin(kind: FaultKind, fault: Promise<void>, name = ''): string {
    this.#later.add(fault)
    void fault.finally(() => this.#later.delete(fault))
    this.#count(kind)
    return name
  }

  #count(kind: FaultKind): void {
    this.made[kind] = (this.made[kind] ?? 0) + 1
  }

  async #redis(): Promise<void> {
    const { redis } = this.#cluster.servers
    await redis.kill()
    await this.#named({ agent: 'scheduler', gateway: 'bus' }, redisMs)
    await redis.restart()
  }

  async #database(): Promise<void> {
    const { mongodb } = this.#cluster.servers
    await mongodb.kill()
    await this.#named({ agent: 'storage', gateway: 'storage' }, databaseMs)
    await mongodb.restart()
  }

  /** Waits for this time, and until each running process reports the outage. */
  async #named(check: Record<'agent' | 'gateway', string>, forMs: number): Promise<void> {
    const over = wait(forMs)
    const { agents, gateways } = this.#cluster.cluster
    const roles = [
      [agents, check.agent],
      [gateways, check.gateway],
    ] as const
    const awake = roles.flatMap(([processes, name]) =>
      processes.filter(({ state }) => state === 'ready').map((one) => this.#names(one, name)),
    )
    await Promise.all(awake)
    await over
  }

  async #names(one: ParleyProcess, check: string): Promise<void> {
    const until = Date.now() + patienceMs
    while (one.state === 'ready') {
      const { status, checks } = await healthOf(one)
      if (status === 503 && checks[check]?.startsWith('error:')) return
      if (Date.now() > until) return void this.unreportedOutages.push(`${one.name}: ${check}`)
      await wait(100)
    }
  }

  /**
   * Sets the clock behind or ahead until a request is refused because of it. A payer's clock is only set behind, because
   * payments expire.
   */
  async #wrongClock(client: Client, chance: number): Promise<void> {
    const before = client.refusedByClock
    const seconds = Math.round(301 + chance * day)
    client.clock.wrongBy = client.role === 'signs' && chance < 0.25 ? seconds : -seconds
    const until = Date.now() + patienceMs
    await wait(clockMs)
    while (client.refusedByClock === before && Date.now() < until) await wait(100)
    client.clock.wrongBy = 0
  }
}

async function freeze(one: ParleyProcess): Promise<void> {
  one.freeze()
  await wait(frozenMs)
  one.thaw()
}
