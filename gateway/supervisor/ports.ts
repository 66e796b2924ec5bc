import { once } from 'node:events'
import net from 'node:net'

/** Assigns the ports that follow the gateway's own in the order of the calls, and skips ports in use. */
export class Ports {
  readonly #host: string
  readonly #first: number
  readonly #taken = new Set<number>()
  #turn: Promise<unknown> = Promise.resolve()

  /** @param first first port to assign; if 0, the operating system chooses every port */
  constructor(host: string, first: number) {
    this.#host = host
    this.#first = first
  }

  /** Returns the preferred port (from an earlier run) if it is free, and otherwise the next free port. */
  take(preferred?: number): Promise<number> {
    const turn = this.#turn.then(() => this.#findFree(preferred))
    this.#turn = turn.catch(() => undefined)
    return turn
  }

  release(port: number): void {
    this.#taken.delete(port)
  }

  async #findFree(preferred: number | undefined): Promise<number> {
    if (this.#first === 0) return 0
    const candidates = preferred === undefined ? [] : [preferred]
    for (let port = this.#first; port <= Math.min(this.#first + 999, 65_535); port++) candidates.push(port)
    for (const port of candidates) {
      if (this.#taken.has(port) || !(await isFree(this.#host, port))) continue
      this.#taken.add(port)
      return port
    }
    throw new Error(`no free port at or above ${this.#first}`)
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
