/** An address of an agent that speaks A2A, as cards list it. */
export type AgentInterface = { url: string; protocolBinding: string; protocolVersion: string }

/** The scopes that cards name, with a description for people. */
export const cardScopes = { 'agent:read': 'Read tasks and cards', 'agent:write': 'Send messages' }

/** The paths below an agent's address, the preferred one first. */
const interfaces = [
  { path: '/a2a/v1', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  { path: '/a2a/v1', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
  { path: '/a2a/v0.3', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
] as const

/** Returns the A2A interfaces of the agent at the URL, as cards of A2A 1.0 list them. */
export function interfacesAt(url: string): AgentInterface[] {
  const base = url.replace(/\/+$/, '')
  return interfaces.map(({ path, ...rest }) => ({ url: base + path, ...rest }))
}

/** The fields by which clients of A2A 0.3 find their interface in a card. Its `url` may be that of another dialect. */
export function interfaceFieldsAt(url: string) {
  const ofVersion = interfacesAt(url).filter(({ protocolVersion }) => protocolVersion === '0.3')
  return {
    preferredTransport: 'JSONRPC',
    additionalInterfaces: ofVersion.map(({ url, protocolBinding }) => ({ url, transport: protocolBinding })),
  }
}
