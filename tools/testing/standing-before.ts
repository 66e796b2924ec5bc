import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A line to a server that can fail. */
export interface Standing extends AsyncDisposable {
  /** The address that was given, with the line before it. */
  url: string
  /** `silence`: what is sent is swallowed. `down`: every connection is cut. */
  fault: 'none' | 'silence' | 'down'
  /** HTTP requests and connections that failed, so far. */
  asked: number
}

/** Stands before an HTTP server on this machine, and passes on bytes. */
export async function standBefore(address: string): Promise<Standing> {
  const target = new URL(address)
  const open = new Set<Socket>()
  const line = createServer((near) => {
    track(near)
    if (standing.fault === 'down') return cut(near)
    const far = connect(Number(target.port), target.hostname)
    track(far)
    near.on('data', (chunk) => {
      standing.asked += chunk.toString('latin1').match(/^[A-Z]+ \S+ HTTP\/1\.1\r$/gm)?.length ?? 0
      if (standing.fault === 'down') near.destroy()
      else if (standing.fault === 'none') far.write(chunk)
    })
    far.pipe(near)
    near.on('close', () => far.destroy())
    far.on('close', () => near.destroy())
  })
  const track = (socket: Socket) => {
    open.add(socket)
    socket.on('error', () => {}).on('close', () => open.delete(socket))
  }
  const cut = (near: Socket) => {
    standing.asked += 1
    near.destroy()
  }
  await once(line.listen(0, '127.0.0.1'), 'listening')
  const standing: Standing = {
    url: `http://127.0.0.1:${(line.address() as AddressInfo).port}${target.pathname}`,
    fault: 'none',
    asked: 0,
    [Symbol.asyncDispose]: async () => {
      for (const socket of open) socket.destroy()
      await new Promise((done) => line.close(done))
    },
  }
  return standing
}
