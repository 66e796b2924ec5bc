import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A TCP proxy in front of a server, with faults that can be switched on and off. */
export interface FaultyProxy extends AsyncDisposable {
  /** The address of the server, through the proxy. */
  url: string
  /** `silence`: discards what clients send. `down`: closes every connection. */
  fault: 'none' | 'silence' | 'down'
  /** Number of HTTP requests and refused connections. */
  requests: number
}

/** Starts a proxy for an HTTP server on this machine. It forwards bytes unchanged. */
export async function startFaultyProxy(address: string): Promise<FaultyProxy> {
  const target = new URL(address)
  const open = new Set<Socket>()
  const server = createServer((client) => {
    track(client)
    if (proxy.fault === 'down') return refuse(client)
    const upstream = connect(Number(target.port), target.hostname)
    track(upstream)
    client.on('data', (chunk) => {
      proxy.requests += chunk.toString('latin1').match(/^[A-Z]+ \S+ HTTP\/1\.1\r$/gm)?.length ?? 0
      if (proxy.fault === 'down') client.destroy()
      else if (proxy.fault === 'none') upstream.write(chunk)
    })
    upstream.pipe(client)
    client.on('close', () => upstream.destroy())
    upstream.on('close', () => client.destroy())
  })
  const track = (socket: Socket) => {
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
  }
  const refuse = (client: Socket) => {
    proxy.requests += 1
    client.destroy()
  }
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const proxy: FaultyProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${target.pathname}`,
    fault: 'none',
    requests: 0,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((done) => server.close(done))
    },
  }
  return proxy
}
