import dns from 'node:dns/promises'
import net from 'node:net'
import { type AllowedHosts, allowsAddress, allowsName } from './allowed-hosts.ts'
import { OutgoingFailed, OutgoingRefused } from './outgoing-errors.ts'
import { notPublic, type OutgoingUrl } from './outgoing-url.ts'
import { verdict } from './public-address.ts'

/** Returns all addresses of a name in the order in which to try them. Rejects if there are none. */
export type Resolver = (host: string) => Promise<string[]>

/** Lookups occupy threads that are shared by the whole process, so their number is limited. */
const lookupsMax = 256
const pending = new Map<string, Promise<string[]>>()

/**
 * Uses the system's resolver (hosts file, search domains). Concurrent lookups of a name share a result without
 * caching.
 */
export const systemResolver: Resolver = (host) => {
  const shared = pending.get(host)
  if (shared !== undefined) return shared
  if (pending.size >= lookupsMax)
    return Promise.reject(new OutgoingFailed('busy', 'Too many name lookups are in progress'))
  const lookup = dns
    .lookup(host, { all: true, order: 'verbatim' })
    .then((entries) => entries.map(({ address }) => address))
    .finally(() => pending.delete(host))
  pending.set(host, lookup)
  return lookup
}

/** A name may have thousands of addresses, and every request checks each of them. */
const addressesMax = 100

/**
 * Resolves and checks the addresses of a host. If any address is not public, all of them are rejected. A name without
 * an exception may have at most 100 addresses. The signal bounds the time.
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
      throw new OutgoingFailed('too_large', 'The host name has too many addresses')
    for (const address of addresses) {
      const reach = verdict(address)
      if (!reach.public && !allowsAddress(options.allowed, address)) throw notPublic(reach.is)
    }
  }
  return addresses
}

async function lookUp(
  host: string,
  { resolver, signal }: { resolver: Resolver; signal: AbortSignal },
): Promise<string[]> {
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  const stop = () => {
    const reason: unknown = signal.reason
    reject(reason)
  }
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    const addresses = await Promise.race([resolver(host), stopped])
    if (addresses.length > 0 && addresses.every((address) => net.isIP(address) > 0)) return addresses
    throw new Error('no addresses')
  } catch (error) {
    if (signal.aborted || error instanceof OutgoingFailed || error instanceof OutgoingRefused) throw error
    throw new OutgoingFailed('name_not_found', 'The host name was not found', error)
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
