import type { HostHealth } from './concurrency-budget.ts'

/** An owner with a delivery that is ready for a host. */
export interface ReadyHost {
  owner: string
  host: string
  health: HostHealth
}

/** An owner's hosts that have the same health, starting with the next host. */
interface OwnerHosts {
  /** Owners with lower numbers come first. */
  turn: number
  hosts: Set<string>
}

const healthStates = ['healthy', 'new', 'failing'] as const

/** Rotates over owners, and over the hosts of each owner. */
export class RoundRobin {
  /** There is one map per host health, because one kind may be at its limit while another is not. Ordered by turn. */
  readonly #owners = {
    healthy: new Map<string, OwnerHosts>(),
    new: new Map<string, OwnerHosts>(),
    failing: new Map<string, OwnerHosts>(),
  }
  #turn = 0

  /** Appends the host to its owner's hosts, unless it is already there. */
  add({ owner, host, health }: ReadyHost): void {
    const owners = this.#owners[health]
    const hosts = owners.get(owner)
    if (hosts !== undefined) hosts.hosts.add(host)
    else owners.set(owner, { turn: ++this.#turn, hosts: new Set([host]) })
  }

  remove({ owner, host, health }: ReadyHost): void {
    const hosts = this.#owners[health].get(owner)
    hosts?.hosts.delete(host)
    if (hosts?.hosts.size === 0) this.#owners[health].delete(owner)
  }

  /**
   * Removes and returns the next host, and moves its owner to the end. An owner at its limit keeps its
   * position.
   */
  next(limits: {
    isFull: (health: HostHealth) => boolean
    canStart: (health: HostHealth, owner: string) => boolean
  }): ReadyHost | undefined {
    let best: { turn: number; ready: ReadyHost } | undefined
    for (const health of healthStates) {
      if (limits.isFull(health)) continue
      for (const [owner, { turn, hosts }] of this.#owners[health]) {
        if (best !== undefined && best.turn < turn) break
        const [host] = hosts
        if (host === undefined || !limits.canStart(health, owner)) continue
        best = { turn, ready: { owner, host, health } }
        break
      }
    }
    if (best !== undefined) this.#rotate(best.ready)
    return best?.ready
  }

  /** Moves the owner to the end of every map, and to the last position in the map that was served. */
  #rotate(ready: ReadyHost): void {
    this.remove(ready)
    for (const health of healthStates) if (health !== ready.health) this.#moveToEnd(ready.owner, health)
    this.#moveToEnd(ready.owner, ready.health)
  }

  #moveToEnd(owner: string, health: HostHealth): void {
    const owners = this.#owners[health]
    const hosts = owners.get(owner)
    if (hosts === undefined) return
    owners.delete(owner)
    hosts.turn = ++this.#turn
    owners.set(owner, hosts)
  }
}
