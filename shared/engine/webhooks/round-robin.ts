import type { HostHealth } from './concurrency-budget.ts'

/** An owner with something ready for a host. */
export interface Ready {
  owner: string
  host: string
  standing: HostHealth
}

/** The hosts of one owner and one standing, next first. */
interface Line {
  /** The lower, the sooner. */
  turn: number
  hosts: Set<string>
}

const standings = ['well', 'new', 'sick'] as const

/** Which owner is next, and which of its hosts: owners take turns, and so do the hosts of an owner. */
export class RoundRobin {
  /** Per standing, since one may be full while another has room. Each is in the order of turns. */
  readonly #lines = {
    well: new Map<string, Line>(),
    new: new Map<string, Line>(),
    sick: new Map<string, Line>(),
  }
  #turn = 0

  /** At the end of what the owner has; where it is already when it is there. */
  add({ owner, host, standing }: Ready): void {
    const lines = this.#lines[standing]
    const line = lines.get(owner)
    if (line !== undefined) line.hosts.add(host)
    else lines.set(owner, { turn: ++this.#turn, hosts: new Set([host]) })
  }

  remove({ owner, host, standing }: Ready): void {
    const line = this.#lines[standing].get(owner)
    line?.hosts.delete(host)
    if (line?.hosts.size === 0) this.#lines[standing].delete(owner)
  }

  /** Takes it out; its owner's next turn comes after those of all others. An owner without room keeps its turn. */
  next(rules: {
    isFull: (standing: HostHealth) => boolean
    hasRoom: (standing: HostHealth, owner: string) => boolean
  }): Ready | undefined {
    let best: { turn: number; ready: Ready } | undefined
    for (const standing of standings) {
      if (rules.isFull(standing)) continue
      for (const [owner, { turn, hosts }] of this.#lines[standing]) {
        if (best !== undefined && best.turn < turn) break
        const [host] = hosts
        if (host === undefined || !rules.hasRoom(standing, owner)) continue
        best = { turn, ready: { owner, host, standing } }
        break
      }
    }
    if (best !== undefined) this.#served(best.ready)
    return best?.ready
  }

  /** The standing that was served is the owner's last one. */
  #served(ready: Ready): void {
    this.remove(ready)
    for (const standing of standings) if (standing !== ready.standing) this.#toEnd(ready.owner, standing)
    this.#toEnd(ready.owner, ready.standing)
  }

  #toEnd(owner: string, standing: HostHealth): void {
    const lines = this.#lines[standing]
    const line = lines.get(owner)
    if (line === undefined) return
    lines.delete(owner)
    line.turn = ++this.#turn
    lines.set(owner, line)
  }
}
