import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/** A wire to a server of this machine that can fall silent. */
export interface Wire extends AsyncDisposable {
  port: number
  /**
   * The connections that there are carry nothing any more and stay open; new ones work. Those whose last request matches go
   * on as well.
   */
  silence(but?: RegExp): void
}

/** A port that leads to another one. */
export async function wireTo(port: number): Promise<Wire> {
  const pairs = new Set<[Socket, Socket]>()
  const asked = new Map<Socket, string>()
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1')
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    near.pipe(far).pipe(near)
    near.on('data', (chunk: Buffer) => asked.set(near, chunk.toString('latin1')))
    for (const socket of pair) {
      socket.on('error', () => {})
      socket.on('close', () => {
        for (const other of pair) other.destroy()
        pairs.delete(pair)
        asked.delete(near)
      })
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    silence: (but) => {
      for (const [near, far] of pairs) {
        if (but?.test(asked.get(near) ?? '') === true) continue
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
