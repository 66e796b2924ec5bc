import { once } from 'node:events'
import net from 'node:net'

export interface Answer {
  /** Whether the status is 200. */
  ok: boolean
  body: string
}

/** A keep-alive HTTP/1.1 connection that reads responses with a Content-Length. */
export class Connection {
  readonly #socket: net.Socket
  #received = ''
  #waiting: { resolve: (answer: Answer) => void; reject: (error: Error) => void } | undefined

  private constructor(socket: net.Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    // Reads bytes as characters. Lengths stay correct, and the expected texts are ASCII.
    socket.setEncoding('latin1')
    socket.on('data', (text: string) => this.#receive(text))
    socket.on('error', (error) => this.#waiting?.reject(error))
    socket.on('close', () => this.#waiting?.reject(new Error('the server closed the connection')))
  }

  static async open(address: string): Promise<Connection> {
    const { hostname, port } = new URL(address)
    const socket = net.connect(Number(port), hostname)
    await once(socket, 'connect')
    return new Connection(socket)
  }

  ask(request: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#waiting = undefined
    this.#socket.destroy()
  }

  #receive(text: string): void {
    this.#received += text
    const headEnds = this.#received.indexOf('\r\n\r\n')
    if (headEnds < 0) return
    const length = /\r\ncontent-length: *(\d+)/i.exec(this.#received.slice(0, headEnds))?.[1]
    if (length === undefined) {
      this.#waiting?.reject(new Error(`response without Content-Length: ${this.#received.slice(0, 500)}`))
      return
    }
    const ends = headEnds + 4 + Number(length)
    if (this.#received.length < ends) return
    const answer = {
      ok: this.#received.startsWith('HTTP/1.1 200 '),
      body: this.#received.slice(headEnds + 4, ends),
    }
    this.#received = this.#received.slice(ends)
    this.#waiting?.resolve(answer)
  }
}
