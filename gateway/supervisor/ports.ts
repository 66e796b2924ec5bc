import { once } from 'node:events'
import net from 'node:net'

/** Gives out the ports after the gateway's own, in the order asked, leaving out those in use. */
export class Ports {
  readonly #host: string
  readonly #first: number
  readonly #given = new Set<number>()
  #turn: Promise<unknown> = Promise.resolve()

  /** `first` 0: the system chooses every port. */
  constructor(host: string, first: number) {
    this.#host = host
    this.#first = first
  }

  /** The preferred port (that of an earlier run) where it is free, else the next free one. */
  take(preferred?: number): Promise<number> {
    const turn = this.#turn.then(() => this.#take(preferred))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  release(port: number): void {
    this.#given.delete(port)
  }

  async #take(preferred: number | undefined): Promise<number> {
    if (this.#first === 0) return 0
    const candidates = preferred === undefined ? [] : [preferred]
    for (let port = this.#first; port <= Math.min(this.#first + 999, 65_535); port++) candidates.push(port)
    for (const port of candidates) {
      if (this.#given.has(port) || !(await isFree(this.#host, port))) continue
      this.#given.add(port)
      return port
    }
    throw new Error(`no free port from ${this.#first} on`)
  }
}

async function isFree(host: string, port: number): Promise<boolean> {
  const server = net.createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}
