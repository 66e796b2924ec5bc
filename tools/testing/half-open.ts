import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A connection to a server on this machine that can become half-open. */
export interface Wire extends AsyncDisposable {
  port: number
  /**
   * Open connections stop transferring data but stay open. New connections work, as do those with a last request that
   * matches.
   */
  silence(but?: RegExp): void
}

/** Starts a port that forwards to another one. */
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
