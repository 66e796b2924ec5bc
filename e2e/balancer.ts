import { once } from 'node:events'
import net from 'node:net'

/** Stands before several gateways: each new connection goes to the next one of them that takes it. */
export class Balancer implements AsyncDisposable {
  /** Ports of this machine. */
  targets: number[] = []
  readonly port: number
  readonly url: string
  readonly #server: net.Server
  readonly #open: Set<net.Socket>
  #turn = 0

  private constructor(server: net.Server, open: Set<net.Socket>) {
    this.#server = server
    this.#open = open
    this.port = (server.address() as net.AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}`
    server.on('connection', (client) => void this.#pass(client).catch(() => client.destroy()))
  }

  static async start(): Promise<Balancer> {
    const open = new Set<net.Socket>()
    // What comes first waits until somebody takes it.
    const server = net.createServer({ pauseOnConnect: true })
    server.on('connection', (client) => {
      open.add(client)
      client.on('error', () => client.destroy())
      client.once('close', () => open.delete(client))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Balancer(server, open)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const over = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#open) socket.destroy()
    await over
  }

  async #pass(client: net.Socket): Promise<void> {
    const gateway = await this.#connected()
    gateway.on('error', () => client.destroy())
    gateway.once('close', () => client.destroySoon())
    client.once('close', () => gateway.destroySoon())
    gateway.pipe(client)
    client.pipe(gateway)
    client.resume()
  }

  async #connected(): Promise<net.Socket> {
    const targets = [...this.targets]
    this.#turn += 1
    for (let n = 0; n < targets.length; n += 1) {
      const socket = net.connect(targets[(this.#turn + n) % targets.length] as number, '127.0.0.1')
      try {
        await once(socket, 'connect')
        return socket
      } catch {
        socket.destroy()
      }
    }
    throw new Error('no gateway takes the connection')
  }
}
