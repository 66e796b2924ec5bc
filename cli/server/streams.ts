import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { ServerConnection } from './server-connection.ts'
import { slugOf } from './server-connection.ts'

/** Returns false if the agent's card disables streaming, and true even if the card cannot be read. */
export async function mayStream(server: ServerConnection, agent: string): Promise<boolean> {
  if (agent === '-') return true
  const card = await server
    .getPublicJson(`/agents/${slugOf(agent)}/.well-known/agent.json`)
    .catch(() => undefined)
  const capabilities = isObject(card) ? card['capabilities'] : undefined
  return !isObject(capabilities) || capabilities['streaming'] !== false
}
