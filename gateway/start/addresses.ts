import { once } from 'node:events'
import net from 'node:net'
import type { GatewayConfig } from '../config.ts'

export interface Addresses {
  port: number
  /** For processes on this machine. */
  local: string
  /** For clients; stands in cards. */
  public: string
}

/** PORT=0 is decided before anything is built: the OAuth server's issuer holds the port. */
export async function decideAddresses(config: GatewayConfig): Promise<Addresses> {
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const local = `http://${reachable(config.host)}:${port}`
  return { port, local, public: config.publicUrl ?? local }
}

/** A server that listens everywhere is asked on this machine. */
export function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

export async function freePort(host: string): Promise<number> {
  const server = net.createServer().listen(0, host)
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
