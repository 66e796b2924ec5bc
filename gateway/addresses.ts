import { once } from 'node:events'
import net from 'node:net'

export interface Addresses {
  port: number
  /** The URL that processes on this machine use. */
  local: string
  /** The URL that clients use and that agent cards contain. */
  public: string
}

/** Resolves PORT=0 to a free port before any part is created, because the OAuth issuer contains the port. */
export async function resolveAddresses(config: {
  host: string
  port: number
  publicUrl?: string | undefined
}): Promise<Addresses> {
  const port = config.port === 0 ? await freePort(config.host) : config.port
  const local = `http://${reachable(config.host)}:${port}`
  return { port, local, public: config.publicUrl ?? local }
}

/** Returns the host part of a URL at which this machine reaches a server that listens on `host`. */
export function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

export async function freePort(host: string): Promise<number> {
  const server = net.createServer().listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no TCP port')
  server.close()
  await once(server, 'close')
  return address.port
}

/** Where the relay listens; undefined while it is not running. */
export interface RelayAddress {
  url?: string | undefined
}
