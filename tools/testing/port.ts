import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'

/** Below the ports from which systems take those of outgoing connections: one stays free while its server starts again. */
const [lowest, highest] = [10_000, 30_000]

/** A port of this machine that nobody listens on now. */
export function freePort(): Promise<number> {
  return freePorts(1)
}

/** The first of so many ports in a row that nobody listens on now. */
export async function freePorts(count: number): Promise<number> {
  for (let attempt = 0; attempt < 1000; attempt += 1) {
    const first = randomInt(lowest, highest)
    const row = Array.from({ length: count }, (_, n) => first + n)
    if ((await Promise.all(row.map(isFree))).every(Boolean)) return first
  }
  throw new Error(`no ${count} free ports in a row`)
}

/** Whether one could listen there, at every address of this machine. */
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

/** Whether somebody listens on the port. */
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
