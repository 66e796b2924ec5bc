import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createConnection, createServer } from 'node:net'

/** Range below the ephemeral ports of outgoing connections, so that a port stays free while its server restarts. */
const [lowest, highest] = [10_000, 30_000]
/** The port of this range to which `fetch` does not connect (Fetch standard, "bad port"). */
const refusedByFetch = 10_080

/**
 * Each process chooses ports from a part of the range. Between the choice of a port and the moment at which its server
 * listens, another process would otherwise find it free as well.
 */
const parts = 64
const partSize = Math.floor((highest - lowest) / parts)
const partStart = lowest + (process.pid % parts) * partSize
/** The ports that this process has chosen. */
const chosen = new Set<number>()

/** Finds a free port on this machine. */
export function freePort(): Promise<number> {
  return freePorts(1)
}

/** Finds `count` consecutive free ports and returns the first one. */
export async function freePorts(count: number): Promise<number> {
  // In a long run, the ports of ended servers are chosen again.
  if (chosen.size > partSize / 2) chosen.clear()
  for (let attempt = 0; attempt < 1000; attempt += 1) {
    const first = partStart + randomInt(partSize - count + 1)
    const row = Array.from({ length: count }, (_, n) => first + n)
    if (row.some((port) => chosen.has(port) || port === refusedByFetch)) continue
    for (const port of row) chosen.add(port)
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
