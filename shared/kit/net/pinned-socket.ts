import net, { type Socket } from 'node:net'
import tls from 'node:tls'
import { addressValue, withoutMapping } from './address-block.ts'
import { OutgoingFailed } from './outgoing-errors.ts'
import type { OutgoingUrl } from './outgoing-url.ts'

export interface PinnedSocket {
  socket: Socket
  /** The address of the peer. */
  address: string
}

/** Time limit per address if there is another one to try, and maximum number of addresses to try. */
const [attemptMs, attemptsMax] = [1000, 4]

/**
 * Connects to the first of these addresses that responds. No name is resolved. TLS sends and verifies the name of the
 * URL.
 * @throws OutgoingFailed `connection` or `tls`; the signal's reason
 */
export async function openPinned(
  target: OutgoingUrl,
  addresses: readonly string[],
  options: { ca?: string | undefined; signal: AbortSignal },
): Promise<PinnedSocket> {
  const candidates = addresses.slice(0, attemptsMax)
  let failure: unknown
  for (const [index, address] of candidates.entries()) {
    options.signal.throwIfAborted()
    const limitMs = index < candidates.length - 1 ? attemptMs : undefined
    try {
      return { socket: await connect(target, address, { ...options, limitMs }), address }
    } catch (error) {
      failure = error
      if (!(error instanceof OutgoingFailed) || error.reason !== 'connection') break
    }
  }
  throw failure
}

function connect(
  { url, host, isAddress }: OutgoingUrl,
  address: string,
  options: { ca?: string | undefined; signal: AbortSignal; limitMs: number | undefined },
): Promise<Socket> {
  const secure = url.protocol === 'https:'
  const to = { host: address, port: Number(url.port || (secure ? 443 : 80)), autoSelectFamily: false }
  // `rejectUnauthorized` is explicit, because the environment could disable verification.
  const socket = secure
    ? tls.connect({
        ...to,
        ...(isAddress ? {} : { servername: host }),
        ...(options.ca === undefined ? {} : { ca: options.ca }),
        rejectUnauthorized: true,
        ALPNProtocols: ['http/1.1'],
      })
    : net.connect(to)
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const stop = () => {
    const reason: unknown = options.signal.reason
    reject(reason)
  }
  const timer =
    options.limitMs === undefined ? undefined : setTimeout(() => reject(unreachable()), options.limitMs)
  let connected = false
  options.signal.addEventListener('abort', stop, { once: true })
  socket.setNoDelay(true)
  socket.once('connect', () => (connected = true))
  socket.on('error', (error) => {
    reject(
      connected
        ? new OutgoingFailed('tls', 'The TLS handshake with the host failed', error)
        : unreachable(error),
    )
  })
  socket.once(secure ? 'secureConnect' : 'connect', () => {
    // This guarantees that the checked address was reached.
    if (isSame(socket.remoteAddress, address)) resolve(socket)
    else reject(unreachable())
  })
  return promise
    .catch((error: unknown) => {
      socket.destroy()
      throw error
    })
    .finally(() => {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', stop)
    })
}

function unreachable(cause?: unknown): OutgoingFailed {
  return new OutgoingFailed('connection', 'The host could not be reached', cause)
}

function isSame(one: string | undefined, other: string): boolean {
  const [a, b] = [addressValue(one ?? ''), addressValue(other)]
  if (a === undefined || b === undefined) return false
  return withoutMapping(a).value === withoutMapping(b).value
}
