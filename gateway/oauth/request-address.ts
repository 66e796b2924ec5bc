import type { IncomingMessage } from 'node:http'

const addresses = new WeakMap<IncomingMessage, string>()

/** Returns the client address of a request. The forwarding headers that the client sent are removed by mount.ts. */
export function addressOf(request: IncomingMessage): string | undefined {
  return addresses.get(request) ?? request.socket.remoteAddress
}

export function setAddress(request: IncomingMessage, address: string): void {
  addresses.set(request, address)
}
