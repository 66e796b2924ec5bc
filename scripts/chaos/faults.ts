import { setTimeout as wait } from 'node:timers/promises'
import type { Client } from './clients.ts'
import type { House } from './house.ts'
import { healthOf, type KeptProcess } from './kept-process.ts'
import { type Fault, type FaultKind, pick } from './plan.ts'

const [databaseMs, redisMs, frozenMs, clockMs] = [5000, 500, 15_000, 4000]
/** Longer than any of them needs, so that what does not happen is a finding and no hurry. */
const patienceMs = 30_000
const day = 24 * 60 * 60

/** Makes faults happen, and knows which of them are not over yet. */
export class Faults {
  readonly #house: House
  readonly #clients: Client[]
  readonly #later = new Set<Promise<void>>()

  constructor(house: House, clients: Client[]) {
    this.#house = house
    this.#clients = clients.filter(({ role }) => role !== 'plain')
  }

  readonly made: Partial<Record<FaultKind, number>> = {}
  /** How often a process did not name in `/health` what was away. */
  unsaid: string[] = []

  /** What it happened to; undefined where it could not. Outages are over then, of the others the end is waited for later. */
  async make({ kind, victim }: Fault): Promise<string | undefined> {
    const { agents, gateways } = this.#house
    const able =
      kind === 'kill agent' ? agents : kind === 'kill gateway' ? gateways : [...agents, ...gateways]
    const up = able.filter(({ state }) => state === 'ready')
    if (kind === 'redis') await this.#redis()
    else if (kind === 'database') await this.#database()
    else if (kind === 'clock') return this.#begin(kind, this.#wrongClock(pick(this.#clients, victim), victim))
    else if (up.length === 0) return undefined
    else if (kind === 'freeze') return this.#begin(kind, freeze(pick(up, victim)), pick(up, victim).name)
    else pick(up, victim).kill()
    this.#count(kind)
    return kind.startsWith('kill') ? pick(up, victim).name : ''
  }

  /** Resolves when nothing is wrong any more and every process is there again. @throws Error when one does not come back */
  async over(): Promise<void> {
    while (this.#later.size > 0) await Promise.all(this.#later)
    const { agents, gateways } = this.#house
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
    const { redis } = this.#house.servers
    await redis.kill()
    await this.#named({ agent: 'scheduler', gateway: 'bus' }, redisMs)
    await redis.restart()
  }

  async #database(): Promise<void> {
    const { mongodb } = this.#house.servers
    await mongodb.kill()
    await this.#named({ agent: 'storage', gateway: 'storage' }, databaseMs)
    await mongodb.restart()
  }

  /** Away for so long, and until each process that runs has said so. */
  async #named(check: Record<KeptProcess['role'], string>, forMs: number): Promise<void> {
    const over = wait(forMs)
    const { agents, gateways } = this.#house
    const awake = [...agents, ...gateways].filter(({ state }) => state === 'ready')
    await Promise.all(awake.map((one) => this.#names(one, check[one.role])))
    await over
  }

  async #names(one: KeptProcess, check: string): Promise<void> {
    const until = Date.now() + patienceMs
    while (one.state === 'ready') {
      const { status, checks } = await healthOf(one)
      if (status === 503 && checks[check]?.startsWith('error:')) return
      if (Date.now() > until) return void this.unsaid.push(`${one.name}: ${check}`)
      await wait(100)
    }
  }

  /** Behind or ahead, until it was told so. A payer's is behind, for what it signs has an end. */
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

async function freeze(one: KeptProcess): Promise<void> {
  one.freeze()
  await wait(frozenMs)
  one.thaw()
}
