import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import { guardedResolver } from '@parley/kit/net/dns-resolver'
import { outgoingUrl } from '@parley/kit/net/outgoing-url'
import { openPinned } from '@parley/kit/net/pinned-socket'
import { type Resolver, resolvePublic } from '@parley/kit/net/resolve-public'
import { Agent, type buildConnector } from 'undici'
import { type UpstreamOptions, upstreamLimits } from './upstream.ts'

export interface ExternalUpstreamOptions extends UpstreamOptions {
  /** Exceptions to the guard: REGISTRY_ALLOWED_HOSTS. */
  allowed: AllowedHosts
  resolver?: Resolver
  /** CA certificates (PEM) that replace the default ones. */
  ca?: string
}

/**
 * Creates connections to external agents. Each new connection passes the private-address guard, because a name's DNS
 * answer may have changed since registration.
 */
export function createExternalUpstream(options: ExternalUpstreamOptions): Agent {
  const { allowed, resolver = guardedResolver(options.allowed), ca, connectTimeoutMs = 2000 } = options
  const open = async (address: string) => {
    const signal = AbortSignal.timeout(connectTimeoutMs)
    const target = outgoingUrl(address, allowed)
    const addresses = await resolvePublic(target, { allowed, resolver, signal })
    return openPinned(target, addresses, { ca, signal })
  }
  const connectFor = async (address: string, done: buildConnector.Callback) => {
    const opened = await open(address).catch((error: Error) => error)
    if (opened instanceof Error) done(opened, null)
    else done(null, opened.socket)
  }
  return new Agent({
    ...upstreamLimits(options),
    connect: ({ protocol, host = '' }, done) => void connectFor(`${protocol}//${host}`, done),
  })
}
