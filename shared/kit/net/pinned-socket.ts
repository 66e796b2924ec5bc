import net, { type Socket } from 'node:net'
import tls from 'node:tls'
import { addressValue, withoutMapping } from './address-block.ts'
import { OutgoingFailed } from './outgoing-errors.ts'
import type { OutgoingUrl } from './outgoing-url.ts'

export interface PinnedSocket {
  socket: Socket
  /** One of the addresses given. */
  address: string
}

/** How long an address may take while there is another to try, and how many are tried. */
const [attemptMs, attemptsMax] = [1000, 4]

/**
 * Connects to the first of these addresses that answers, and to nothing else: no name is resolved here. TLS asks for and
 * verifies the name of the URL.
 * @throws OutgoingFailed `connection` or `tls`; the signal's reason
 */
export async function openPinned(
  target: OutgoingUrl,
  addresses: readonly string[],
  options: { ca?: string | undefined; signal: AbortSignal },
): Promise<PinnedSocket> {
  const tried = addresses.slice(0, attemptsMax)
  let failure: unknown
  for (const [index, address] of tried.entries()) {
    options.signal.throwIfAborted()
    const limitMs = index < tried.length - 1 ? attemptMs : undefined
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
  // Said outright: the environment could turn the verification off.
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
  const stop = () => reject(options.signal.reason as Error)
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
    // The address that was checked is the one that is reached, whatever lies between.
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
