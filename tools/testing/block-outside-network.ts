/**
 * Blocks traffic to other machines. Every test worker loads this file. Connections and name lookups fail immediately
 * with an error that names the host. This applies to the test process, but not to processes that a test starts.
 */
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'
import net from 'node:net'

class OutsideNetworkBlocked extends Error {
  override readonly name = 'OutsideNetworkBlocked'
  readonly code = 'EACCES'
  constructor(host: string) {
    super(`The outside network is blocked in tests: ${host}`)
  }
}

const local = /^(localhost|.+\.localhost|127(\.\d+){3}|0\.0\.0\.0|::1?|::ffff:127(\.\d+){3})$/i

// oxlint-disable-next-line typescript/unbound-method -- called with its socket below
const connect = net.Socket.prototype.connect
net.Socket.prototype.connect = function (this: net.Socket, ...args: unknown[]) {
  const host = hostOf(args)
  if (host !== undefined && !local.test(host)) return this.destroy(new OutsideNetworkBlocked(host))
  return Reflect.apply(connect, this, args) as net.Socket
} as typeof connect

/** Arguments of `connect`: a path, a port and host, options, or the array that `net.connect` makes from these. */
function hostOf(args: unknown[]): string | undefined {
  const [first, second] = Array.isArray(args[0]) ? (args[0] as unknown[]) : args
  if (typeof first === 'object' && first !== null) return (first as { host?: string }).host
  return typeof second === 'string' ? second : undefined
}

const lookup = dns.lookup
dns.lookup = ((host: string, ...rest: unknown[]) =>
  local.test(host) || net.isIP(host) > 0
    ? Reflect.apply(lookup, dns, [host, ...rest])
    : refuse(host, rest.at(-1))) as typeof lookup

const lookupPromise = dns.promises.lookup
dns.promises.lookup = ((host: string, ...rest: unknown[]) =>
  local.test(host) || net.isIP(host) > 0
    ? Reflect.apply(lookupPromise, dns.promises, [host, ...rest])
    : Promise.reject(new OutsideNetworkBlocked(host))) as typeof lookupPromise

for (const name of ['resolve', 'resolve4', 'resolve6', 'resolveTxt', 'resolveSrv', 'reverse'] as const) {
  Object.assign(dns.promises, {
    [name]: (host: string) => Promise.reject(new OutsideNetworkBlocked(host)),
  })
  Object.assign(dns, {
    [name]: (host: string, ...rest: unknown[]) => refuse(host, rest.at(-1)),
  })
}

// A test may use a resolver with its own name server.
for (const Resolver of [dns.Resolver, dns.promises.Resolver]) {
  for (const name of ['resolve4', 'resolve6'] as const) {
    const resolve = Resolver.prototype[name] as (...args: unknown[]) => unknown
    Resolver.prototype[name] = function (this: dns.Resolver, host: string, ...rest: unknown[]) {
      const isOurs = this.getServers().every((server) => local.test(server.replace(/:\d+$/, '')))
      if (isOurs) return Reflect.apply(resolve, this, [host, ...rest])
      if (Resolver === dns.Resolver) return refuse(host, rest.at(-1))
      return Promise.reject(new OutsideNetworkBlocked(host))
    } as never
  }
}

function refuse(host: string, done: unknown): void {
  process.nextTick(done as (error: Error) => void, new OutsideNetworkBlocked(host))
}

// Also updates the named imports of modules that are already loaded.
syncBuiltinESMExports()
