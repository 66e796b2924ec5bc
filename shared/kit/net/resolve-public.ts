import dns from 'node:dns/promises'
import net from 'node:net'
import { type AllowedHosts, allowsAddress, allowsName } from './allowed-hosts.ts'
import { OutgoingFailed, OutgoingRefused } from './outgoing-errors.ts'
import { notPublic, type OutgoingUrl } from './outgoing-url.ts'
import { verdict } from './public-address.ts'

/** All addresses of a name, in the order to try them. Rejects when there is none. */
export type Resolver = (host: string) => Promise<string[]>

/** Look-ups occupy threads that the whole process shares; a slow name must not be able to hold many. */
const lookupsMax = 256
const underWay = new Map<string, Promise<string[]>>()

/** The system's resolver (hosts file, search domains). Look-ups of one name that are under way are shared; nothing is kept. */
export const systemResolver: Resolver = (host) => {
  const shared = underWay.get(host)
  if (shared !== undefined) return shared
  if (underWay.size >= lookupsMax)
    return Promise.reject(new OutgoingFailed('busy', 'Too many names are being looked up'))
  const asked = dns
    .lookup(host, { all: true, order: 'verbatim' })
    .then((found) => found.map(({ address }) => address))
    .finally(() => underWay.delete(host))
  underWay.set(host, asked)
  return asked
}

/** A name may answer with thousands of addresses, and each is to be judged for each request. */
const addressesMax = 100

/**
 * The addresses that a connection may go to: the name is resolved once, and one answer that is not public refuses all. A
 * name that is no exception has at most 100. Bounded in time by the signal.
 * @throws OutgoingRefused, OutgoingFailed `name_not_found` or `too_large`; the signal's reason
 */
export async function resolvePublic(
  target: Pick<OutgoingUrl, 'host' | 'isAddress'>,
  options: { allowed: AllowedHosts; resolver: Resolver; signal: AbortSignal },
): Promise<string[]> {
  if (target.isAddress) return [target.host]
  const addresses = await lookUp(target.host, options)
  if (!allowsName(options.allowed, target.host)) {
    if (addresses.length > addressesMax)
      throw new OutgoingFailed('too_large', 'The name of the host has too many addresses')
    for (const address of addresses) {
      const found = verdict(address)
      if (!found.public && !allowsAddress(options.allowed, address)) throw notPublic(found.is)
    }
  }
  return addresses
}

async function lookUp(
  host: string,
  { resolver, signal }: { resolver: Resolver; signal: AbortSignal },
): Promise<string[]> {
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    const addresses = await Promise.race([resolver(host), stopped])
    if (addresses.length > 0 && addresses.every((address) => net.isIP(address) > 0)) return addresses
    throw new Error('no addresses')
  } catch (error) {
    if (signal.aborted || error instanceof OutgoingFailed || error instanceof OutgoingRefused) throw error
    throw new OutgoingFailed('name_not_found', 'The name of the host was not found', error)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
