import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'

/** Range below the ephemeral ports of outgoing connections, so that a port stays free while its server restarts. */
const [lowest, highest] = [10_000, 30_000]

/** Finds a free port on this machine. */
export function freePort(): Promise<number> {
  return freePorts(1)
}

/** Finds `count` consecutive free ports and returns the first one. */
export async function freePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < 1000; attempt += 1) {
    const first = randomInt(lowest, highest)
    const row = Array.from({ length: count }, (_, n) => first + n)
    if ((await Promise.all(row.map(isFree))).every(Boolean)) return first
  }
  throw new Error(`no ${count} free ports in a row`)
}

/** Whether a server can listen on the port at every address of this machine. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port), 'listening')
    return true
  } catch {
    return false
  } finally {
    if (server.listening) await once(server.close(), 'close')
  }
}

/** Whether a server listens on the port. */
export async function answers(port: number): Promise<boolean> {
  const socket = createConnection(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
