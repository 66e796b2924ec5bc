import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'

/**
 * Returns the caller as the routes of the gateway know it. A token for an interface is valid for the gateway as a whole
 * (`/mcp`) or for one agent (`/agents/{slug}/mcp`), so its audience becomes that address.
 */
export function interfaceCaller(caller: AuthenticatedCaller, gatewayUrl: string): AuthenticatedCaller {
  const { audience, credentials } = caller
  if (audience === undefined) return caller
  const names = audience.map((name) => addressBelow(name, gatewayUrl) ?? name)
  const introspection = { ...credentials.introspection, aud: names }
  return { ...caller, audience: names, credentials: { ...credentials, introspection } }
}

/** The interfaces of the whole gateway. */
const interfaces = new Set<string | undefined>(['mcp', 'v1'])

/** Returns the address of the gateway or of its agent to which the interface belongs; undefined for other names. */
function addressBelow(name: string, gatewayUrl: string): string | undefined {
  const base = gatewayUrl.replace(/\/+$/, '')
  if (!name.startsWith(`${base}/`)) return undefined
  const [folder, slug, ...rest] = name
    .slice(base.length + 1)
    .replace(/\/+$/, '')
    .split('/')
  if (folder !== 'agents') return slug === undefined && interfaces.has(folder) ? base : undefined
  return slug === undefined || rest.length === 0 ? undefined : `${base}/agents/${slug}`
}
