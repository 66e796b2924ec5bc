import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { healthOf } from './parley-process.ts'

const healthCheckEveryMs = 300

export interface BalancerOptions {
  /**
   * Prefers targets whose `/health` returns 200, and closes the connections of those that do not respond. If not set,
   * the balancer uses every target that accepts connections.
   */
  healthChecks?: boolean
}

/** A TCP load balancer that distributes connections over ports of this machine in turn. */
export class Balancer implements AsyncDisposable {
  readonly url: string
  readonly #server: net.Server
  readonly #closing = new AbortController()
  readonly #health = new Map<number, number>()
  /** The target of each open connection, once it is connected. */
  readonly #connections = new Map<net.Socket, number | undefined>()
  readonly #options: BalancerOptions
  #targets: readonly number[] = []
  #turn = 0

  private constructor(server: net.Server, options: BalancerOptions) {
    this.#server = server
    this.#options = options
    this.url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`
    server.on('connection', (client) => void this.#connect(client).catch(() => client.destroy()))
  }

  static async start(options: BalancerOptions = {}): Promise<Balancer> {
    // A client's first bytes wait until the target is connected.
    const server = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Balancer(server, options)
  }

  /** The targets of new connections. Changing them does not affect open connections. */
  get targets(): readonly number[] {
    return this.#targets
  }

  set targets(targets: readonly number[]) {
    this.#targets = targets
    if (!this.#options.healthChecks) return
    for (const port of targets.filter((target) => !this.#health.has(target))) void this.#checkHealth(port)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const client of this.#connections.keys()) client.destroy()
    await closed
  }

  async #connect(client: net.Socket): Promise<void> {
    this.#connections.set(client, undefined)
    client.on('error', () => client.destroy())
    client.once('close', () => this.#connections.delete(client))
    const { socket, port } = await this.#connectToTarget()
    if (client.destroyed) return void socket.destroy()
    this.#connections.set(client, port)
    socket.on('error', () => client.destroy())
    socket.once('close', () => client.destroySoon())
    client.once('close', () => socket.destroySoon())
    socket.pipe(client)
    client.pipe(socket)
    client.resume()
  }

  async #connectToTarget(): Promise<{ socket: net.Socket; port: number }> {
    for (const port of this.#inOrder()) {
      const socket = net.connect(port, '127.0.0.1')
      try {
        await once(socket, 'connect')
        return { socket, port }
      } catch {
        socket.destroy()
      }
    }
    throw new Error('no target accepts the connection')
  }

  #inOrder(): number[] {
    this.#turn += 1
    const start = this.#turn % Math.max(this.#targets.length, 1)
    const rotated = [...this.#targets.slice(start), ...this.#targets.slice(0, start)]
    return rotated.sort((a, b) => rankOf(this.#health.get(a)) - rankOf(this.#health.get(b)))
  }

  async #checkHealth(port: number): Promise<void> {
    this.#health.set(port, 503)
    while (!this.#closing.signal.aborted) {
      const { status } = await healthOf({ url: `http://127.0.0.1:${port}` })
      this.#health.set(port, status)
      if (status === 0)
        for (const [client, target] of this.#connections) if (target === port) client.destroy()
      await wait(healthCheckEveryMs, undefined, { signal: this.#closing.signal }).catch(() => undefined)
    }
  }
}

/** Sorts healthy targets first and targets without a response last. */
function rankOf(status = 503): number {
  return status === 200 ? 0 : status === 0 ? 2 : 1
}
