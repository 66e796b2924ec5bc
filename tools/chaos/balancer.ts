import { once } from 'node:events'
import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { healthOf, type KeptProcess } from './kept-process.ts'

const lookEveryMs = 300

/**
 * One address before all gateways, as PUBLIC_URL wants it: connections go to those whose `/health` is 200, in turn; where
 * there is none, to any. Those of a gateway that does not answer are cut.
 */
export class Balancer implements AsyncDisposable {
  readonly port: number
  readonly url: string
  readonly #server: net.Server
  readonly #over = new AbortController()
  #gateways: KeptProcess[] = []
  readonly #health = new Map<KeptProcess, number>()
  readonly #open = new Map<net.Socket, KeptProcess>()
  #turn = 0

  private constructor(server: net.Server) {
    this.#server = server
    this.port = (server.address() as net.AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}`
    server.on('connection', (client) => this.#pass(client, this.#inOrder()))
  }

  static async start(): Promise<Balancer> {
    const server = net.createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Balancer(server)
  }

  /** From now on. */
  before(gateways: KeptProcess[]): void {
    this.#gateways = gateways
    for (const gateway of gateways) void this.#look(gateway)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort()
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#open.keys()) socket.destroy()
    await closed
  }

  #inOrder(): KeptProcess[] {
    this.#turn += 1
    const from = this.#turn % Math.max(this.#gateways.length, 1)
    const turned = [...this.#gateways.slice(from), ...this.#gateways.slice(0, from)]
    return turned.sort((a, b) => rankOf(this.#health.get(a)) - rankOf(this.#health.get(b)))
  }

  #pass(client: net.Socket, [gateway, ...others]: KeptProcess[]): void {
    client.on('error', () => client.destroy())
    if (gateway === undefined) return void client.destroy()
    const upstream = net.connect(Number(new URL(gateway.url).port), '127.0.0.1')
    this.#open.set(client, gateway)
    client.once('close', () => {
      this.#open.delete(client)
      upstream.destroy()
    })
    let connected = false
    upstream.once('connect', () => {
      connected = true
      client.pipe(upstream).pipe(client)
    })
    upstream.once('error', () => {
      if (connected || client.destroyed) client.destroy()
      else this.#pass(client, others)
    })
    upstream.once('close', () => connected && client.destroy())
  }

  async #look(gateway: KeptProcess): Promise<void> {
    while (!this.#over.signal.aborted) {
      const { status } = await healthOf(gateway)
      this.#health.set(gateway, status)
      if (status === 0)
        for (const [client, at] of this.#open) if (at === gateway && !client.connecting) client.destroy()
      await wait(lookEveryMs, undefined, { signal: this.#over.signal }).catch(() => undefined)
    }
  }
}

/** What is not known yet is as good as one that says 503. */
function rankOf(status = 503): number {
  return status === 200 ? 0 : status === 0 ? 2 : 1
}
