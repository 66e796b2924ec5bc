import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A connection to a server of this machine that can become half-open. */
export interface Wire extends AsyncDisposable {
  port: number
  /**
   * Open connections stop transferring data and stay open; new ones work. Connections whose last request matches
   * continue as well.
   */
  silence(but?: RegExp): void
}

/** A port that forwards to another one. */
export async function wireTo(port: number): Promise<Wire> {
  const pairs = new Set<[Socket, Socket]>()
  const lastRequests = new Map<Socket, string>()
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    near.pipe(far).pipe(near)
    near.on('data', (chunk: Buffer) => lastRequests.set(near, chunk.toString('latin1')))
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.on('close', () => {
        for (const other of pair) other.destroy()
        pairs.delete(pair)
        lastRequests.delete(near)
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    silence: (but) => {
      for (const [near, far] of pairs) {
        if (but?.test(lastRequests.get(near) ?? '') === true) continue
        near.unpipe(far).resume()
        far.unpipe(near).resume()
      }
    },
    [Symbol.asyncDispose]: async () => {
      for (const pair of pairs) for (const socket of pair) socket.destroy()
      server.close()
    },
  }
}
