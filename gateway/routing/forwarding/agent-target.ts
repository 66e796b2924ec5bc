import type { Dispatcher } from 'undici'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { agentIsDown, agentIsNotTrusted } from './upstream-error.ts'

/** Where a request goes. */
export interface Target {
  entry: AgentEntry
  upstream: Dispatcher
  origin: string
  /** Of the agent's own route. */
  path: string
}

/** Connections to the agent: those that registered from outside are behind the private-address guard. */
export type DispatcherFor = (entry: AgentEntry) => Dispatcher

interface Base {
  origin: string
  path: string
}

/** An entry is replaced whenever it changes, so that what was read of its address stays true. */
const bases = new WeakMap<AgentEntry, Base>()

/**
 * The agent's route, if the agent may be given work and is there.
 * @param path of the agent's own route, with a slash before it
 * @throws ParleyError Unavailable
 */
export function targetOf(entry: AgentEntry, path: string, dispatcherFor: DispatcherFor): Target {
  // With the request its bearer token would go there.
  if (!entry.admitted) throw agentIsNotTrusted(entry.slug, 'not_admitted')
  if (entry.quarantine?.by !== undefined) throw agentIsNotTrusted(entry.slug, 'quarantined')
  if (entry.status !== 'ready') throw agentIsDown(entry.slug)
  const base = baseOf(entry)
  return { entry, upstream: dispatcherFor(entry), origin: base.origin, path: base.path + path }
}

/** Method names as paths are for agents of this deployment; external agents serve JSON-RPC at their root. */
export function rpcPath(entry: AgentEntry, { url }: { url: string }): string {
  return isExternal(entry) ? '/' : (url.split('?', 1)[0] ?? '/')
}

function baseOf(entry: AgentEntry): Base {
  const known = bases.get(entry)
  if (known !== undefined) return known
  const { origin, pathname } = new URL(entry.url)
  const base = { origin, path: pathname.replace(/\/$/, '') }
  bases.set(entry, base)
  return base
}
