import type { Codec } from '@parley/wire/codecs/codec'
import { defaultDialect, partsOf } from '@parley/wire/codecs/dialects'
import type { Dispatcher } from 'undici'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { agentIsDown, agentIsNotTrusted } from './upstream-error.ts'

/** The destination of a forwarded request. */
export interface Target {
  entry: AgentEntry
  upstream: Dispatcher
  origin: string
  /** Path on the agent. */
  path: string
}

/** Returns the dispatcher for an agent. Connections to external agents pass the private-address guard. */
export type DispatcherFor = (entry: AgentEntry) => Dispatcher

interface Base {
  origin: string
  path: string
}

/** Stands for the relay, to which the dispatcher of relayed agents connects wherever it listens. */
const relayOrigin = 'http://relay.internal'

/** Keyed by the entry object, because every change to an entry creates a new object. */
const bases = new WeakMap<AgentEntry, Base>()

/**
 * The target of a request to an agent that is admitted, not quarantined and ready. A foreign agent may be unreachable, because
 * the relay keeps its tasks; messages need `requireReady` in addition.
 * @param path path on the agent, with a leading slash
 * @throws ParleyError Unavailable
 */
export function targetOf(entry: AgentEntry, path: string, dispatcherFor: DispatcherFor): Target {
  // An agent that is not admitted must not receive requests.
  if (!entry.admitted) throw agentIsNotTrusted(entry.slug, 'not_admitted')
  if (entry.quarantine?.by !== undefined) throw agentIsNotTrusted(entry.slug, 'quarantined')
  if (entry.relay === undefined) requireReady(entry)
  const base = baseOf(entry)
  return { entry, upstream: dispatcherFor(entry), origin: base.origin, path: base.path + path }
}

/** @throws ParleyError Unavailable if the agent is starting or does not respond */
export function requireReady({ status, slug }: AgentEntry): void {
  if (status !== 'ready') throw agentIsDown(slug)
}

/**
 * The path of a call at an agent. Supervised agents also serve `/<method>` of Parley's own dialect; external agents serve only
 * their root in this dialect. In other dialects, the query may belong to the call.
 */
export function callPath(entry: AgentEntry, { url }: { url: string }, codec: Codec): string {
  if (codec !== defaultDialect) return url
  return isExternal(entry) ? '/' : partsOf(url).path
}

function baseOf(entry: AgentEntry): Base {
  const known = bases.get(entry)
  if (known !== undefined) return known
  const { origin, pathname } = new URL(entry.relay === undefined ? entry.url : `${relayOrigin}/${entry.slug}`)
  const base = { origin, path: pathname.replace(/\/$/, '') }
  bases.set(entry, base)
  return base
}
