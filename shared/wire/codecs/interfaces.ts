/** An address of an agent that speaks A2A, as cards list it. */
export interface AgentInterface {
  url: string
  protocolBinding: string
  protocolVersion: string
}

/** The paths below an agent's address, the preferred one first. */
const interfaces = [
  { path: '/a2a/v1', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  { path: '/a2a/v1', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  { path: '/a2a/v0.3', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
] as const

/** Returns the A2A interfaces of the agent at the URL. */
export function interfacesAt(url: string): AgentInterface[] {
  const base = url.replace(/\/+$/, '')
  return interfaces.map(({ path, ...rest }) => ({ url: base + path, ...rest }))
}
