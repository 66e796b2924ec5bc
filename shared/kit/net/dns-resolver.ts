import dns from 'node:dns/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { type AllowedHosts, allowsName } from './allowed-hosts.ts'
import { OutgoingFailed } from './outgoing-errors.ts'
import { type Resolver, systemResolver } from './resolve-public.ts'

export interface DnsResolverOptions {
  /** `address` or `address:port`. Default: the servers of the system. */
  servers?: string[]
  /** Timeout for one query to one server; each server is queried twice. Default 2 s. */
  timeoutMs?: number
  /** Maximum number of concurrent lookups; additional ones fail with `busy`. Default 1000. */
  lookupsMax?: number
}

/** How long to wait for the other address family after the first has responded. */
const otherFamilyMs = 250
/** How long the system's list of servers is cached. */
const serversMs = 60_000

/**
 * Queries DNS servers directly, for untrusted names. The system's resolver occupies one of a few threads for each
 * lookup, so names with a slow name server could block all other lookups in this process. The hosts file and search
 * domains are not used, because public names do not need them.
 */
export function dnsResolver(options: DnsResolverOptions = {}): Resolver {
  const { timeoutMs = 2000, lookupsMax = 1000, servers } = options
  const pending = new Map<string, Promise<string[]>>()
  let cached: { at: number; resolver: dns.Resolver } | undefined
  const current = () => {
    if (cached !== undefined && performance.now() - cached.at < serversMs) return cached.resolver
    const resolver = new dns.Resolver({ timeout: timeoutMs, tries: 2 })
    if (servers !== undefined) resolver.setServers(servers)
    cached = { at: performance.now(), resolver }
    return resolver
  }
  return (host) => {
    const shared = pending.get(host)
    if (shared !== undefined) return shared
    if (pending.size >= lookupsMax)
      return Promise.reject(new OutgoingFailed('busy', 'Too many name lookups are in progress'))
    const lookup = bothFamilies(current(), host).finally(() => pending.delete(host))
    pending.set(host, lookup)
    return lookup
  }
}

/**
 * Returns the addresses when both families have responded, or when one has and the other is late. IPv4 comes first,
 * because every network reaches it. Rejects if there is no address.
 */
async function bothFamilies(resolver: dns.Resolver, host: string): Promise<string[]> {
  const addresses: Record<4 | 6, string[]> = { 4: [], 6: [] }
  const lookups = ([4, 6] as const).map(async (family) => {
    addresses[family] = await (family === 4 ? resolver.resolve4(host) : resolver.resolve6(host))
  })
  await Promise.any(lookups)
  const late = new AbortController()
  const timeout = wait(otherFamilyMs, undefined, { signal: late.signal }).catch(() => {})
  await Promise.race([Promise.allSettled(lookups), timeout])
  late.abort()
  return [...addresses[4], ...addresses[6]]
}

const publicDns = dnsResolver()

/** Resolves the operator's allowed names with the system's resolver, all other names with DNS queries. */
export function guardedResolver(allowed: AllowedHosts): Resolver {
  return (host) => (allowsName(allowed, host) ? systemResolver(host) : publicDns(host))
}
