import dns from 'node:dns/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { type AllowedHosts, allowsName } from './allowed-hosts.ts'
import { OutgoingFailed } from './outgoing-errors.ts'
import { type Resolver, systemResolver } from './resolve-public.ts'

export interface DnsResolverOptions {
  /** `address` or `address:port`. Default: those of the system. */
  servers?: string[]
  /** For one question to one server; each is asked twice. Default 2 s. */
  timeoutMs?: number
  /** Names being asked for at a time; one more fails with `busy`. Default 1000. */
  askedMax?: number
}

/** How long the other family is waited for, once one has answered. */
const otherFamilyMs = 250
/** How long the system's list of servers is believed. */
const serversMs = 60_000

/**
 * Asks the DNS itself, for names that strangers gave. The system's resolver holds one of a few threads for each name that
 * is slow, so that somebody with a slow name server could hold up every other look-up of this process; here nothing waits
 * but the one who asks. Hosts file and search domains are not read: no public name needs them.
 */
export function dnsResolver(options: DnsResolverOptions = {}): Resolver {
  const { timeoutMs = 2000, askedMax = 1000, servers } = options
  const underWay = new Map<string, Promise<string[]>>()
  let made: { at: number; resolver: dns.Resolver } | undefined
  const current = () => {
    if (made !== undefined && performance.now() - made.at < serversMs) return made.resolver
    const resolver = new dns.Resolver({ timeout: timeoutMs, tries: 2 })
    if (servers !== undefined) resolver.setServers(servers)
    made = { at: performance.now(), resolver }
    return resolver
  }
  return (host) => {
    const shared = underWay.get(host)
    if (shared !== undefined) return shared
    if (underWay.size >= askedMax)
      return Promise.reject(new OutgoingFailed('busy', 'Too many names are being looked up'))
    const asked = bothFamilies(current(), host).finally(() => underWay.delete(host))
    underWay.set(host, asked)
    return asked
  }
}

/**
 * What is known once both have answered, or one has and the other is late. IPv4 first: it is reached from everywhere.
 * Rejects when there is no address.
 */
async function bothFamilies(resolver: dns.Resolver, host: string): Promise<string[]> {
  const found: Record<4 | 6, string[]> = { 4: [], 6: [] }
  const asked = ([4, 6] as const).map(async (family) => {
    found[family] = await (family === 4 ? resolver.resolve4(host) : resolver.resolve6(host))
  })
  await Promise.any(asked)
  const late = new AbortController()
  const over = wait(otherFamilyMs, undefined, { signal: late.signal }).catch(() => {})
  await Promise.race([Promise.allSettled(asked), over])
  late.abort()
  return [...found[4], ...found[6]]
}

const publicDns = dnsResolver()

/** Names that the operator has named are looked up as the system does, all others in the DNS. */
export function guardedResolver(allowed: AllowedHosts): Resolver {
  return (host) => (allowsName(allowed, host) ? systemResolver(host) : publicDns(host))
}
