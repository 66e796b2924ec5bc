import { Agent } from 'undici'
import type { AllowedHosts } from '../../shared/net/allowed-hosts.ts'
import { outgoingUrl } from '../../shared/net/outgoing-url.ts'
import { openPinned } from '../../shared/net/pinned-socket.ts'
import { type Resolver, resolvePublic, systemResolver } from '../../shared/net/resolve-public.ts'
import { type UpstreamOptions, upstreamLimits } from './upstream.ts'

export interface OutsideUpstreamOptions extends UpstreamOptions {
  /** Exceptions to the guard: REGISTRY_ALLOWED_HOSTS. */
  allowed: AllowedHosts
  resolver?: Resolver
  /** Certificates (PEM) that are trusted instead of the well-known ones. */
  ca?: string
}

/**
 * Connections to agents that registered from outside: each new one is opened behind the private-address guard, for what
 * a name resolves to may have changed since the agent came.
 */
export function createOutsideUpstream(options: OutsideUpstreamOptions): Agent {
  const { allowed, resolver = systemResolver, ca, connectTimeoutMs = 2000 } = options
  const open = async (address: string) => {
    const signal = AbortSignal.timeout(connectTimeoutMs)
    const target = outgoingUrl(address, allowed)
    const addresses = await resolvePublic(target, { allowed, resolver, signal })
    return openPinned(target, addresses, { ca, signal })
  }
  return new Agent({
    ...upstreamLimits(options),
    connect: ({ protocol, host = '' }, done) => {
      open(`${protocol}//${host}`).then(
        ({ socket }) => done(null, socket),
        (error: Error) => done(error, null),
      )
    },
  })
}
